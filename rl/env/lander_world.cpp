/* SPDX-License-Identifier: Apache-2.0 */
/* The world of lander_world.h, with the shapes and constants of Gymnasium's LunarLander-v3. */
#include "env/lander_world.h"

#include <box2d/box2d.h>

#include <new>

namespace
{

const float SCALE = 30.0F; /* pixels of Gymnasium's drawing in a unit */
const float WIDTH = 20.0F, HEIGHT = 400.0F / 30.0F;
const uint16 GROUND = 0x01, LANDER = 0x10, LEG = 0x20;

class contacts : public b2ContactListener
{
  public:
    b2Body *lander = nullptr, *legs[2] = {nullptr, nullptr};
    bool crashed = false, on_ground[2] = {false, false};

    void BeginContact(b2Contact *contact) override
    {
        if (touches(contact, lander)) crashed = true;
        for (int i = 0; i < 2; i++)
            if (touches(contact, legs[i])) on_ground[i] = true;
    }

    void EndContact(b2Contact *contact) override
    {
        for (int i = 0; i < 2; i++)
            if (touches(contact, legs[i])) on_ground[i] = false;
    }

  private:
    static bool touches(b2Contact *contact, const b2Body *body)
    {
        return contact->GetFixtureA()->GetBody() == body ||
               contact->GetFixtureB()->GetBody() == body;
    }
};

} // namespace

struct rp_lander_world {
    contacts touched; /* outlives the world, which calls it */
    b2World world{b2Vec2(0.0F, -10.0F)};
};

struct rp_lander_pool {
    struct {
        uint64_t key;
        rp_lander_world *world;
    } entries[RP_LANDER_MOST_WORLDS]; /* the oldest first */
    int count;
};

static void add_edge(b2Body *ground, b2Vec2 from, b2Vec2 to, float friction)
{
    b2EdgeShape edge;
    b2FixtureDef fixture;

    edge.SetTwoSided(from, to);
    fixture.shape = &edge;
    fixture.friction = friction;
    fixture.filter.categoryBits = GROUND;
    ground->CreateFixture(&fixture);
}

static void make_ground(rp_lander_world *w, const rp_lander_start *start)
{
    b2BodyDef def;
    b2Body *ground = w->world.CreateBody(&def);

    add_edge(ground, b2Vec2(0, 0), b2Vec2(WIDTH, 0), 0.2F);
    for (int i = 0; i + 1 < RP_LANDER_POINTS; i++)
        add_edge(
            ground, b2Vec2(2.0F * static_cast<float>(i), static_cast<float>(start->ground[i])),
            b2Vec2(2.0F * static_cast<float>(i + 1), static_cast<float>(start->ground[i + 1])),
            0.1F);
}

static void make_lander(rp_lander_world *w)
{
    const b2Vec2 corners[] = {
        {-14 / SCALE, 17 / SCALE}, {-17 / SCALE, 0}, {-17 / SCALE, -10 / SCALE},
        {17 / SCALE, -10 / SCALE}, {17 / SCALE, 0},  {14 / SCALE, 17 / SCALE}};
    b2PolygonShape shape;
    b2FixtureDef fixture;
    b2BodyDef def;

    shape.Set(corners, 6);
    fixture.shape = &shape;
    fixture.density = 5.0F;
    fixture.friction = 0.1F;
    fixture.filter.categoryBits = LANDER;
    fixture.filter.maskBits = GROUND;
    def.type = b2_dynamicBody;
    def.position.Set(WIDTH / 2, HEIGHT);
    w->touched.lander = w->world.CreateBody(&def);
    w->touched.lander->CreateFixture(&fixture);
}

/* `side` is -1 or 1. */
static b2Body *make_leg(rp_lander_world *w, float side)
{
    b2PolygonShape shape;
    b2FixtureDef fixture;
    b2BodyDef def;
    b2RevoluteJointDef joint;
    b2Body *leg;

    shape.SetAsBox(2 / SCALE, 8 / SCALE);
    fixture.shape = &shape;
    fixture.density = 1.0F;
    fixture.friction = 0.2F;
    fixture.filter.categoryBits = LEG;
    fixture.filter.maskBits = GROUND;
    def.type = b2_dynamicBody;
    def.position.Set(WIDTH / 2 - side * 20 / SCALE, HEIGHT);
    def.angle = side * 0.05F;
    leg = w->world.CreateBody(&def);
    leg->CreateFixture(&fixture);

    joint.bodyA = w->touched.lander;
    joint.bodyB = leg;
    joint.localAnchorA.Set(0, 0);
    joint.localAnchorB.Set(side * 20 / SCALE, 18 / SCALE);
    joint.referenceAngle = leg->GetAngle() - w->touched.lander->GetAngle();
    joint.enableMotor = true;
    joint.enableLimit = true;
    joint.maxMotorTorque = 40.0F;
    joint.motorSpeed = 0.3F * side;
    joint.lowerAngle = side < 0 ? 0.4F : -0.9F;
    joint.upperAngle = side < 0 ? 0.9F : -0.4F;
    w->world.CreateJoint(&joint);
    return leg;
}

rp_lander_world *rp_lander_world_new(const rp_lander_start *start)
{
    rp_lander_world *w = new (std::nothrow) rp_lander_world;

    if (w == nullptr) return nullptr;
    w->world.SetContactListener(&w->touched);
    make_ground(w, start);
    make_lander(w);
    w->touched.lander->ApplyForceToCenter(
        b2Vec2(static_cast<float>(start->force_x), static_cast<float>(start->force_y)), true);
    w->touched.legs[0] = make_leg(w, -1.0F);
    w->touched.legs[1] = make_leg(w, 1.0F);
    return w;
}

void rp_lander_world_free(rp_lander_world *world)
{
    delete world;
}

void rp_lander_push(rp_lander_world *world, double x, double y, double push_x, double push_y)
{
    world->touched.lander->ApplyLinearImpulse(
        b2Vec2(static_cast<float>(push_x), static_cast<float>(push_y)),
        b2Vec2(static_cast<float>(x), static_cast<float>(y)), true);
}

void rp_lander_pass(rp_lander_world *world)
{
    world->world.Step(1.0F / 50, 6 * 30, 2 * 30);
}

void rp_lander_read(const rp_lander_world *world, rp_lander_body *body)
{
    const contacts &touched = world->touched;
    const b2Body *lander = touched.lander;
    b2Vec2 at = lander->GetPosition(), speed = lander->GetLinearVelocity();

    *body = rp_lander_body{at.x,
                           at.y,
                           speed.x,
                           speed.y,
                           lander->GetAngle(),
                           lander->GetAngularVelocity(),
                           {touched.on_ground[0], touched.on_ground[1]},
                           touched.crashed,
                           !lander->IsAwake()};
}

rp_lander_pool *rp_lander_pool_new(void)
{
    return new (std::nothrow) rp_lander_pool{};
}

void rp_lander_pool_free(rp_lander_pool *pool)
{
    if (pool == nullptr) return;
    for (int i = 0; i < pool->count; i++) delete pool->entries[i].world;
    delete pool;
}

static rp_lander_world *remove_at(rp_lander_pool *pool, int index)
{
    rp_lander_world *world = pool->entries[index].world;

    pool->count--;
    for (int i = index; i < pool->count; i++) pool->entries[i] = pool->entries[i + 1];
    return world;
}

rp_lander_world *rp_lander_pool_take(rp_lander_pool *pool, uint64_t key)
{
    for (int i = 0; i < pool->count; i++)
        if (pool->entries[i].key == key) return remove_at(pool, i);
    return nullptr;
}

void rp_lander_pool_put(rp_lander_pool *pool, uint64_t key, rp_lander_world *world)
{
    if (pool->count == RP_LANDER_MOST_WORLDS) delete remove_at(pool, 0);
    pool->entries[pool->count].key = key;
    pool->entries[pool->count++].world = world;
}
