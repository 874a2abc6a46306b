// SPDX-License-Identifier: Apache-2.0
// A client in Node: @grpc/grpc-js, with messages loaded from proto/ as they are. It runs every
// check below against a server and prints one line for each: "ok NAME" or "not ok NAME: why".
//
//     node client.js ADDRESS PROTO_FOLDER
//
// NODE_PATH says where the packages are.
'use strict';

const assert = require('assert');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [address, protos] = process.argv.slice(2);
const WAIT_MS = 20000;
const STATUS = grpc.status;
const LIMITS = {
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
};

function load(...files) {
  const definition = loader.loadSync(files, {
    includeDirs: [protos], keepCase: true, longs: String, enums: String, defaults: true,
    oneofs: true,
  });
  return grpc.loadPackageDefinition(definition);
}

const reverb = load('reverb/reverb_service.proto').deepmind.reverb;
const own = load('reprise/v1/reprise.proto').reprise.v1;
const health = load('grpc/health/v1/health.proto').grpc.health.v1;
const insecure = grpc.credentials.createInsecure();
const client = new reverb.ReverbService(address, insecure, LIMITS);
const replay = new own.Replay(address, insecure, LIMITS);
const checks = new health.Health(address, insecure, LIMITS);

// --- messages -----------------------------------------------------------------------------------

let lastKey = 1000;
const newKey = () => String(++lastKey);

// A snappy block of one literal.
function stored(data) {
  const header = [];
  for (let n = data.length; ; n = Math.floor(n / 128)) {
    if (n < 128) { header.push(n); break; }
    header.push((n % 128) + 128);
  }
  const length = data.length - 1;
  if (length < 60) {
    header.push(length * 4);
  } else {
    header.push(63 * 4, length & 255, (length >> 8) & 255, (length >> 16) & 255, length >>> 24);
  }
  return Buffer.concat([Buffer.from(header), data]);
}

// One row of bytes.
function makeChunk(bytes) {
  return {
    chunk_key: newKey(),
    sequence_range: { episode_id: '7', start: 0, end: 0 },
    data: { tensors: [{
      dtype: 'DT_UINT8',
      tensor_shape: { dim: [{ size: '1' }, { size: String(bytes.length) }] },
      tensor_content: stored(bytes),
    }] },
    data_tensors_len: 1,
    data_uncompressed_size: String(bytes.length),
  };
}

function makeItem(table, chunk, priority = 1.5) {
  return {
    key: newKey(), table, priority,
    flat_trajectory: { columns: [{
      chunk_slices: [{ chunk_key: chunk.chunk_key, offset: 0, length: 1, index: 0 }],
    }] },
  };
}

// --- calls, each with a limit on its time -------------------------------------------------------

const deadline = (ms = WAIT_MS) => ({ deadline: Date.now() + ms });

function unary(target, method, request, ms) {
  return new Promise((resolve, reject) => {
    target[method](request, new grpc.Metadata(), deadline(ms),
      (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('no refusal');
}

// A stream whose messages and status are waited for.
class Stream {
  constructor(call) {
    this.call = call;
    this.messages = [];
    this.wake = () => {};
    call.on('data', (message) => { this.messages.push(message); this.wake(); });
    call.on('error', () => {});
    this.status = new Promise((resolve) => {
      call.on('status', (status) => { this.ended = status; this.wake(); resolve(status); });
    });
  }

  async receive() {
    while (this.messages.length === 0) {
      if (this.ended) throw new Error(`ended: ${this.ended.code} ${this.ended.details}`);
      await new Promise((resolve) => { this.wake = resolve; });
    }
    return this.messages.shift();
  }

  async confirmed(count) {
    const keys = [];
    while (keys.length < count) keys.push(...(await this.receive()).keys);
    return keys.sort();
  }

  async samples(count) {
    const entries = [];
    while (entries.filter((e) => e.end_of_sequence).length < count) {
      entries.push(...(await this.receive()).entries);
    }
    return entries;
  }
}

const inserts = (ms) => new Stream(client.InsertStream(new grpc.Metadata(), deadline(ms)));
const samples = (ms) => new Stream(client.SampleStream(new grpc.Metadata(), deadline(ms)));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function insert(table, bytes) {
  const chunk = makeChunk(bytes);
  const item = makeItem(table, chunk);
  const stream = inserts();
  stream.call.write({ chunks: [chunk], items: [item] });
  assert.deepStrictEqual(await stream.confirmed(1), [item.key]);
  stream.call.end();
  assert.strictEqual((await stream.status).code, STATUS.OK);
  return { chunk, item };
}

// --- checks -------------------------------------------------------------------------------------

const tests = {
  async 'server info lists the tables'() {
    const answer = await unary(client, 'ServerInfo', {});
    assert.ok(answer.table_info.some((t) => t.name === 'fifo' && t.max_size === '1000'));
    assert.notStrictEqual(answer.tables_state_id.low, '0');
  },

  async 'an item goes in and comes out'() {
    await unary(client, 'Reset', { table: 'fifo' });
    const { chunk, item } = await insert('fifo', Buffer.from('some bytes'));
    const stream = samples();
    stream.call.write({ table: 'fifo', num_samples: 1 });
    const [entry] = await stream.samples(1);
    stream.call.end();
    assert.strictEqual((await stream.status).code, STATUS.OK);
    assert.strictEqual(entry.info.item.key, item.key);
    assert.strictEqual(entry.info.item.priority, 1.5);
    assert.strictEqual(entry.info.probability, 1);
    assert.deepStrictEqual(entry.data[0].data.tensors[0].tensor_content,
      chunk.data.tensors[0].tensor_content);
  },

  async 'streams go both ways at once'() {
    await unary(client, 'Reset', { table: 'uniform' });
    const keys = [];
    const writer = inserts();
    const reader = samples();
    reader.call.write({ table: 'uniform', num_samples: 200 });
    for (let i = 0; i < 200; i++) {
      const chunk = makeChunk(Buffer.from(`row ${i}`));
      const item = makeItem('uniform', chunk);
      keys.push(item.key);
      writer.call.write({ chunks: [chunk], items: [item] });
    }
    assert.deepStrictEqual(await writer.confirmed(200), keys.sort());
    assert.strictEqual((await reader.samples(200)).length, 200);
    writer.call.end();
    reader.call.end();
    assert.strictEqual((await writer.status).code, STATUS.OK);
    assert.strictEqual((await reader.status).code, STATUS.OK);
  },

  async 'a conversation in turns'() {
    const stream = inserts();
    for (let i = 0; i < 20; i++) {
      const chunk = makeChunk(Buffer.from([i]));
      stream.call.write({ chunks: [chunk], items: [makeItem('uniform', chunk)] });
      await stream.confirmed(1);
    }
    stream.call.end();
    assert.strictEqual((await stream.status).code, STATUS.OK);
  },

  async 'ten thousand samples'() {
    await insert('uniform', Buffer.from('x'));
    const stream = samples();
    stream.call.write({ table: 'uniform', num_samples: 10000 });
    stream.call.end();
    assert.strictEqual((await stream.samples(10000)).length, 10000);
    assert.strictEqual((await stream.status).code, STATUS.OK);
  },

  async 'a message of 20 megabytes both ways'() {
    await unary(client, 'Reset', { table: 'fifo' });
    const bytes = Buffer.alloc(20000000);
    for (let i = 0; i < bytes.length; i += 4) bytes.writeUInt32LE((i * 2654435761) >>> 0, i);
    const { chunk } = await insert('fifo', bytes);
    const stream = samples();
    stream.call.write({ table: 'fifo', num_samples: 1 });
    const [entry] = await stream.samples(1);
    stream.call.cancel();
    const found = entry.data[0].data.tensors[0].tensor_content;
    assert.ok(found.equals(chunk.data.tensors[0].tensor_content));
    await unary(client, 'Reset', { table: 'fifo' });
  },

  async 'an unknown table has its code and its words'() {
    const error = await refusal(unary(client, 'Reset', { table: 'nope' }));
    assert.strictEqual(error.code, STATUS.NOT_FOUND);
    assert.strictEqual(error.details, 'Priority table nope was not found');
    const stream = samples();
    stream.call.write({ table: 'nope', num_samples: 1 });
    assert.strictEqual((await stream.status).code, STATUS.NOT_FOUND);
  },

  async 'a timeout of the rate limiter has its words'() {
    await unary(client, 'Reset', { table: 'fifo' });
    const stream = samples();
    stream.call.write(
      { table: 'fifo', num_samples: 1, rate_limiter_timeout: { milliseconds: 100 } });
    const status = await stream.status;
    assert.strictEqual(status.code, STATUS.DEADLINE_EXCEEDED);
    assert.ok(status.details.includes(
      'Rate Limiter: Timeout exceeded before the right to insert was acquired.'));
  },

  async 'bad requests are invalid'() {
    const stream = inserts();
    stream.call.write({});
    assert.strictEqual((await stream.status).code, STATUS.INVALID_ARGUMENT);
    const reader = samples();
    reader.call.write({ table: 'fifo', num_samples: 0 });
    assert.strictEqual((await reader.status).code, STATUS.INVALID_ARGUMENT);
  },

  async 'a deadline ends a wait'() {
    await unary(client, 'Reset', { table: 'fifo' });
    const start = Date.now();
    const stream = samples(300);
    stream.call.write({ table: 'fifo', num_samples: 1 });
    assert.strictEqual((await stream.status).code, STATUS.DEADLINE_EXCEEDED);
    assert.ok(Date.now() - start < 5000);
  },

  async 'a cancelled sampler takes nothing'() {
    const stream = samples();
    stream.call.write({ table: 'queue-3', num_samples: 1 });
    await sleep(200);
    stream.call.cancel();
    assert.strictEqual((await stream.status).code, STATUS.CANCELLED);
    await sleep(200);
    const { item } = await insert('queue-3', Buffer.from('kept'));
    const reader = samples();
    reader.call.write({ table: 'queue-3', num_samples: 1 });
    assert.strictEqual((await reader.samples(1))[0].info.item.key, item.key);
    reader.call.cancel();
  },

  async 'a stream is cancelled while samples flow'() {
    await insert('uniform', Buffer.from('y'));
    const stream = samples();
    stream.call.write({ table: 'uniform', num_samples: 1000000 });
    await stream.samples(100);
    stream.call.cancel();
    assert.strictEqual((await stream.status).code, STATUS.CANCELLED);
  },

  async 'priorities change and items go'() {
    await unary(client, 'Reset', { table: 'uniform' });
    const { item } = await insert('uniform', Buffer.from('z'));
    const stream = samples();
    await unary(client, 'MutatePriorities',
      { table: 'uniform', updates: [{ key: item.key, priority: 7 }] });
    stream.call.write({ table: 'uniform', num_samples: 1 });
    assert.strictEqual((await stream.samples(1))[0].info.item.priority, 7);
    stream.call.cancel();
    await unary(client, 'MutatePriorities', { table: 'uniform', delete_keys: [item.key] });
    const info = await unary(client, 'ServerInfo', {});
    assert.strictEqual(info.table_info.find((t) => t.name === 'uniform').current_size, '0');
  },

  async 'the shortcut within a process is declined'() {
    const stream = new Stream(client.InitializeConnection(new grpc.Metadata(), deadline()));
    stream.call.write({ pid: String(process.pid), table_name: 'fifo' });
    assert.strictEqual((await stream.receive()).address, '0');
    assert.strictEqual((await stream.status).code, STATUS.OK);
  },

  async 'our own service makes a table'() {
    await unary(replay, 'CreateTable', { options: { name: 'from-node', max_size: 10 } });
    await insert('from-node', Buffer.from('here'));
    const answer = await unary(replay, 'Sample', { table: 'from-node', count: 3 });
    assert.strictEqual(answer.entries.length, 3);
    assert.strictEqual(answer.chunks.length, 1);
    await unary(replay, 'DropTable', { table: 'from-node' });
  },

  async 'health is serving'() {
    assert.strictEqual((await unary(checks, 'Check', {})).status, 'SERVING');
  },
};

async function main() {
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    try {
      await Promise.race([test(), sleep(WAIT_MS).then(() => { throw new Error('timed out'); })]);
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`not ok ${name}: ${String(error && error.message).replace(/\n/g, ' ')}`);
    }
  }
  process.exit(failed ? 1 : 0);
}

main();
