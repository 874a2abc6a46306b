/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest of Kubernetes: a StatefulSet for the replay, Jobs for the other parts. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "cli/text/cluster_files.h"
#include "reprise/printable.h"

/* What the pods of the parts differ in. */
typedef struct part_pod {
    const char *role;
    int64_t count;
    bool is_indexed;
    const char *cpu, *memory; /* requested */
} part_pod;

static bool is_utf8(const char *text)
{
    size_t size = strlen(text);

    for (size_t i = 0; i < size;) {
        uint32_t character;

        i += rp_utf8_next(text + i, size - i, &character);
        if (character == RP_NO_CHARACTER) return false;
    }
    return true;
}

/* Adds a string of JSON, which is one of YAML. */
static void put_string(rp_text_buffer *out, const char *text)
{
    rp_json_put_quote(out, text, strlen(text));
}

/* Adds an argument of a container. Kubernetes expands $(NAME); "$$" is a dollar sign. */
static void put_argument(rp_text_buffer *out, const char *text)
{
    rp_text_buffer doubled = {0};

    for (; *text != '\0'; text++) {
        if (*text == '$') rp_text_buffer_put(&doubled, "$");
        rp_text_buffer_add(&doubled, text, 1);
    }
    rp_text_buffer_put(out, "            - ");
    put_string(out, rp_text_buffer_text(&doubled));
    rp_text_buffer_put(out, "\n");
    out->failed = out->failed || doubled.failed;
    rp_text_buffer_deinit(&doubled);
}

static void put_header(const rp_cluster_program *p, rp_text_buffer *out)
{
    rp_text_buffer_format(
        out,
        "# %s: a replay, a learner, an evaluator and actors. Before kubectl apply, make the "
        "token:\n"
        "#   token=$(openssl rand -hex 32)\n"
        "#   hash=$(printf %%s \"$token\" | sha256sum | cut -d' ' -f1)\n"
        "#   kubectl create secret generic %s-token --from-literal=token=\"$token\" \\\n"
        "#     --from-literal=tokens=\"admin parts sha256:$hash\"\n"
        "# The run has ended when the evaluator has (or the learner, with --steps):\n"
        "#   kubectl wait --for=condition=complete --timeout=-1s job/%s-evaluator\n"
        "# kubectl delete -f removes everything but the volumes of the replay.\n",
        p->name, p->name, p->name);
}

static void put_metadata(const rp_cluster_program *p, const char *role, int indent,
                         rp_text_buffer *out)
{
    rp_text_buffer_format(
        out,
        "%*smetadata:\n"
        "%*s  labels: {app.kubernetes.io/name: reprise, "
        "app.kubernetes.io/instance: \"%s\", app.kubernetes.io/component: %s}\n",
        indent, "", indent, "", p->name, role);
    if (indent == 0) rp_text_buffer_format(out, "  name: %s-%s\n", p->name, role);
}

/* The image and what it may do. Its user owns the volumes. */
static void put_container(const rp_cluster_program *p, const part_pod *pod, rp_text_buffer *out)
{
    rp_text_buffer_format(out,
                          "      securityContext: {runAsNonRoot: true, runAsUser: 65532, "
                          "runAsGroup: 65532, fsGroup: 65532, "
                          "seccompProfile: {type: RuntimeDefault}}\n"
                          "      automountServiceAccountToken: false\n"
                          "      containers:\n"
                          "        - name: %s\n"
                          "          image: ",
                          pod->role);
    put_string(out, p->image);
    rp_text_buffer_format(out,
                          "\n"
                          "          securityContext: {allowPrivilegeEscalation: false, "
                          "capabilities: {drop: [ALL]}}\n"
                          "          resources: {requests: {cpu: %s, memory: %s}}\n"
                          "          command: [reprise]\n"
                          "          args:\n",
                          pod->cpu, pod->memory);
}

static void put_claim(const char *size, int indent, rp_text_buffer *out)
{
    rp_text_buffer_format(out,
                          "%*sspec:\n"
                          "%*s  accessModes: [ReadWriteOnce]\n"
                          "%*s  resources: {requests: {storage: %s}}\n",
                          indent, "", indent, "", indent, "", size);
}

static void put_replay(const rp_cluster_program *p, rp_text_buffer *out)
{
    static const part_pod replay = {"replay", 1, false, "1", "1Gi"};

    rp_text_buffer_put(out, "---\napiVersion: v1\nkind: Service\n");
    put_metadata(p, "replay", 0, out);
    rp_text_buffer_format(out,
                          "spec:\n"
                          "  clusterIP: None\n"
                          "  publishNotReadyAddresses: true\n"
                          "  selector: {app.kubernetes.io/instance: \"%s\", "
                          "app.kubernetes.io/component: replay}\n"
                          "  ports: [{name: replay, port: %d}]\n",
                          p->name, p->port);
    rp_text_buffer_put(out, "---\napiVersion: apps/v1\nkind: StatefulSet\n");
    put_metadata(p, "replay", 0, out);
    rp_text_buffer_format(out,
                          "spec:\n"
                          "  replicas: %" PRId64 "\n"
                          "  serviceName: %s-replay\n"
                          "  podManagementPolicy: Parallel\n"
                          "  selector:\n"
                          "    matchLabels: {app.kubernetes.io/instance: \"%s\", "
                          "app.kubernetes.io/component: replay}\n"
                          "  volumeClaimTemplates:\n"
                          "    - metadata: {name: data}\n",
                          p->shards, p->name, p->name);
    put_claim("10Gi", 6, out);
    rp_text_buffer_put(out, "  template:\n");
    put_metadata(p, "replay", 4, out);
    rp_text_buffer_put(out, "    spec:\n");
    rp_text_buffer_format(out,
                          "      volumes: [{name: tokens, secret: {secretName: %s-token, "
                          "items: [{key: tokens, path: tokens}]}}]\n",
                          p->name);
    put_container(p, &replay, out);
    rp_text_buffer_format(
        out,
        "            - serve\n"
        "            - --listen=:%d\n"
        "            - --tokens=/etc/reprise/tokens\n"
        "            - --data=/data/replay\n"
        "            - --durability=interval\n"
        "            - --table=job:fifo:1\n"
        "          ports: [{name: replay, containerPort: %d}]\n"
        "          readinessProbe: {httpGet: {path: /healthz, port: replay}}\n"
        "          volumeMounts: [{name: tokens, mountPath: /etc/reprise, "
        "readOnly: true}, {name: data, mountPath: /data}]\n",
        p->port, p->port);
}

/* The arguments of a part, and its environment. */
static void put_arguments(const rp_cluster_program *p, const part_pod *pod, rp_text_buffer *out)
{
    for (size_t i = 0; i < p->argument_count; i++) put_argument(out, p->arguments[i]);
    rp_text_buffer_format(out,
                          "            - --role=%s\n"
                          "            - --of=%" PRId64 "\n"
                          "            - --replay=",
                          pod->role, p->actors);
    for (int64_t i = 0; i < p->shards; i++)
        rp_text_buffer_format(out, "%s%s-replay-%" PRId64 ".%s-replay:%d", i > 0 ? "," : "",
                              p->name, i, p->name, p->port);
    rp_text_buffer_put(out, "\n");
    if (pod->is_indexed) rp_text_buffer_put(out, "            - --index=$(ACTOR_INDEX)\n");
    if (strcmp(pod->role, "evaluator") == 0)
        rp_text_buffer_put(out, "            - --dir=/data/run\n"
                                "          volumeMounts: [{name: data, mountPath: /data}]\n");
    rp_text_buffer_format(out,
                          "          env:\n"
                          "            - name: REPRISE_TOKEN\n"
                          "              valueFrom: {secretKeyRef: {name: %s-token, "
                          "key: token}}\n",
                          p->name);
    if (pod->is_indexed)
        rp_text_buffer_put(out, "            - name: ACTOR_INDEX\n"
                                "              valueFrom: {fieldRef: {fieldPath: "
                                "\"metadata.annotations['batch.kubernetes.io/"
                                "job-completion-index']\"}}\n");
}

/* A Job restarts a part that ends with a status other than 0. */
static void put_job(const rp_cluster_program *p, const part_pod *pod, rp_text_buffer *out)
{
    rp_text_buffer_put(out, "---\napiVersion: batch/v1\nkind: Job\n");
    put_metadata(p, pod->role, 0, out);
    rp_text_buffer_format(out,
                          "spec:\n"
                          "  parallelism: %" PRId64 "\n"
                          "  completions: %" PRId64 "\n"
                          "  completionMode: %s\n"
                          "  backoffLimit: 1000000\n",
                          pod->count, pod->count, pod->is_indexed ? "Indexed" : "NonIndexed");
    if (p->seconds > 0)
        rp_text_buffer_format(out, "  activeDeadlineSeconds: %" PRId64 "\n", p->seconds);
    rp_text_buffer_put(out, "  template:\n");
    put_metadata(p, pod->role, 4, out);
    rp_text_buffer_put(out, "    spec:\n"
                            "      restartPolicy: OnFailure\n");
    if (strcmp(pod->role, "evaluator") == 0)
        rp_text_buffer_format(out,
                              "      volumes: [{name: data, persistentVolumeClaim: {claimName: "
                              "%s-run}}]\n",
                              p->name);
    put_container(p, pod, out);
    put_arguments(p, pod, out);
}

rp_status rp_cluster_kubernetes(const rp_cluster_program *p, rp_text_buffer *out,
                                rp_problem *problem)
{
    const part_pod pods[] = {{"learner", 1, false, "2", "1Gi"},
                             {"evaluator", 1, false, "1", "256Mi"},
                             {"actor", p->actors, true, "1", "256Mi"}};

    assert(p->actors >= 1 && p->shards >= 1);
    assert(p->port > 0 && p->port < 65536);
    for (size_t i = 0; i < p->argument_count; i++)
        if (!is_utf8(p->arguments[i]))
            return rp_problem_set(problem, NULL,
                                  "'%.200s' is not UTF-8: a manifest cannot contain it",
                                  p->arguments[i]);
    if (!is_utf8(p->image))
        return rp_problem_set(problem, NULL, "--image '%.200s' is not UTF-8", p->image);
    put_header(p, out);
    put_replay(p, out);
    rp_text_buffer_put(out, "---\napiVersion: v1\nkind: PersistentVolumeClaim\n");
    put_metadata(p, "run", 0, out);
    put_claim("1Gi", 0, out);
    for (size_t i = 0; i < sizeof pods / sizeof pods[0]; i++) put_job(p, &pods[i], out);
    return RP_OK;
}
