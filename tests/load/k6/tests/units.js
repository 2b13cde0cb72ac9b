// What the scripts compute, without a target: `k6 run units.js` fails where something is wrong.

import exec from 'k6/execution';

import { executor } from '../lib/executors.js';
import { answerer, arrived, refusalCode, transportCode } from '../lib/failures.js';
import { numberInShare, populatedUser } from '../lib/populated.js';
import { exponential, seedOf, streamOf } from '../lib/random.js';
import { endpointFor, measuredSeconds, parseScenario, phaseAt } from '../lib/scenario.js';
import { parseServerTiming } from '../lib/server_timing.js';
import { readSettings } from '../lib/settings.js';
import { thresholds } from '../lib/thresholds.js';

export const options = { vus: 1, iterations: 1 };

const fixture = JSON.parse(open('../../fixtures/users.json'));
const baselineMix = open('../../scenarios/baseline-mix.json');
const overload = open('../../scenarios/overload.json');
const sls = open('../../scenarios/sls.json');

function equal(actual, expected) {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${left} is not ${right}`);
}

function refused(action, word) {
  try {
    action();
  } catch (error) {
    if (!error.message.includes(word)) throw new Error(`'${error.message}' does not name ${word}`);
    return;
  }
  throw new Error(`nothing was refused that concerns ${word}`);
}

function settings(environment) {
  return readSettings({ SCENARIO: 'smoke', ...environment });
}

const tests = {
  'populated users are those of the fixture': () => {
    for (const { seed, distinct_hashes, n, email, password } of fixture) {
      equal(populatedUser(BigInt(seed), distinct_hashes, n), { email, password });
    }
  },

  'shares of the populated users have nobody in common and leave nobody out': () => {
    const drawn = [];
    for (let index = 0; index < 7; index++) {
      const own = new Set();
      for (let draw = 0; draw < 1; draw += 0.001) own.add(numberInShare(100, index, 7, draw));
      drawn.push(...own);
    }
    equal(drawn.sort((a, b) => a - b), Array.from({ length: 100 }, (_, n) => n));
    equal(numberInShare(3, 5, 7, 0.9), 2);
  },

  'a seed gives the same numbers, and another one others': () => {
    const first = (seed, number) => streamOf(seedOf(seed), number)();
    equal(first(1n, 5), first(1n, 5));
    const seeds = [0n, 1n, 2n, 0x100000000n, 0x200000000n, 0xffffffffffffffffn];
    equal(new Set([...seeds.map((seed) => first(seed, 5)), first(1n, 6)]).size, 7);
    let sum = 0;
    for (let number = 0; number < 20000; number++) sum += exponential(first(1n, number), 0.82);
    const mean = sum / 20000;
    if (Math.abs(mean / 0.82 - 1) > 0.02) throw new Error(`the mean of the think times is ${mean}`);
  },

  'the mix is as weighed': () => {
    const scenario = parseScenario(baselineMix, settings({}));
    const at = (draw) => endpointFor(scenario, draw).endpoint;
    const draws = [0, 0.7999, 0.8001, 0.8999, 0.9001, 0.9699, 0.9701, 0.99999];
    const expected = ['get-user', 'get-user', 'upload', 'upload', 'login', 'login', 'register', 'register'];
    equal(draws.map(at), expected);
  },

  'phases follow each other, with the lengths of the environment': () => {
    const scenario = parseScenario(baselineMix, settings({ RAMP_SECONDS: '2', WARM_UP_SECONDS: '0', MEASURE_SECONDS: '10' }));
    equal(scenario.phases.map(({ kind, until }) => [kind, until]), [['ramp', 2], ['measure', 12], ['ramp_down', 14]]);
    equal([0, 1.99, 2, 11.99, 12, 99].map((second) => phaseAt(scenario, second).kind), [
      'ramp', 'ramp', 'measure', 'measure', 'ramp_down', 'ramp_down',
    ]);
    equal(measuredSeconds(scenario), 10);
  },

  'a closed scenario ramps virtual users': () => {
    const scenario = parseScenario(baselineMix, settings({ VUS: '50', WARM_UP_SECONDS: '0' }));
    equal([scenario.virtualUsers, executor(scenario).executor], [50, 'ramping-vus']);
    equal(executor(scenario).stages, [
      { target: 50, duration: '20s' },
      { target: 50, duration: '180s' },
      { target: 0, duration: '5s' },
    ]);
    const atOnce = parseScenario(baselineMix, settings({ VUS: '50', WARM_UP_SECONDS: '0', RAMP_SECONDS: '0' }));
    equal(executor(atOnce).stages, [{ target: 50, duration: '0s' }, { target: 50, duration: '180s' }]);
  },

  'an open scenario ramps arrivals, and overload is a multiple of them': () => {
    const scenario = parseScenario(overload, settings({ RATE: '12.5' }));
    const { executor: kind, timeUnit, stages, maxVUs } = executor(scenario);
    equal([kind, timeUnit, maxVUs], ['ramping-arrival-rate', '10s', 400]);
    equal(stages.map(({ target }) => target), [125, 125, 125, 250, 250, 375, 375, 125, 125]);
    equal('dropped_iterations' in thresholds(scenario, settings({})), false);
    equal(thresholds(parseScenario(sls, settings({ USERS: '9' })), settings({})).dropped_iterations, ['count==0']);
  },

  'what cannot be run is refused by its name': () => {
    refused(() => settings({ SCENARIO: '' }), 'SCENARIO');
    refused(() => settings({ TARGET: '127.0.0.1:8080' }), 'TARGET');
    refused(() => settings({ VUS: '1.5' }), 'VUS');
    refused(() => settings({ SEED: 'x' }), 'SEED');
    refused(() => parseScenario(sls, settings({})), 'USERS');
    refused(() => parseScenario(baselineMix.replace('"upload"', '"download"'), settings({})), 'download');
    refused(() => parseScenario(baselineMix.replace('"warm_up"', '"rest"'), settings({})), 'rest');
  },

  'server timing is read, and what is none is left out': () => {
    equal(parseServerTiming('pool;dur=0.050, db;dur=4.269, app;dur=0, total;dur=4.5'), { pool: 0.05, db: 4.269, app: 0, total: 4.5 });
    equal(parseServerTiming('db;desc="x";dur=1'), { db: 1 });
    for (const garbage of ['', 'db', 'db;dur=', 'db;dur=x', 'db;dur=-1', 'cdn;dur=3', ';;,,=', 'dur=1']) {
      equal(parseServerTiming(garbage), {});
    }
  },

  'a failure has its cause and its answerer': () => {
    equal(transportCode(1212, 'dial tcp 127.0.0.1:1: connect: connection refused'), 'connect');
    equal(transportCode(1101, 'lookup: no such host'), 'connect');
    equal(transportCode(1310, 'x509: unknown authority'), 'connect');
    equal(transportCode(1050, 'request timeout'), 'timeout');
    equal(transportCode(1220, 'read: connection reset by peer'), 'reset');
    equal(transportCode(1000, 'EOF'), 'reset');
    equal(transportCode(1000, 'malformed HTTP response "x"'), 'protocol');
    equal(transportCode(1000, 'context canceled'), 'interrupted');

    const answer = (status) => ({ status, error_code: status >= 400 ? 1000 + status : 0 });
    equal(answerer(0, {}), 'nobody');
    equal(answerer(503, { 'Server-Timing': 'total;dur=1' }), 'task');
    equal(answerer(502, { Server: 'awselb/2.0' }), 'balancer');
    equal(answerer(504, { Server: 'datum-balancer' }), 'balancer');
    equal(answerer(403, { Server: 'CloudFront' }), 'unknown');
    equal([503, 200, 0].map((status) => arrived(answer(status))), [true, true, false]);
    equal(arrived({ status: 200, error_code: 1220 }), false);

    const problem = { 'Content-Type': 'application/problem+json' };
    equal(refusalCode(401, problem, '{"code":"invalid_credentials"}'), 'invalid_credentials');
    const task = { ...problem, 'Server-Timing': 'total;dur=1' };
    equal(refusalCode(503, { ...task, 'Retry-After': '1' }, '{"code":"hash_queue_full"}'), 'hash_queue_full');
    equal(refusalCode(503, task, '{"code":"hash_queue_full"}'), 'check:retry-after');
    equal(refusalCode(503, { ...problem, Server: 'awselb/2.0' }, '{"code":"x"}'), 'x');
    for (const body of ['not JSON', '{}', '{"code":7}', '{"code":"With spaces"}', `{"code":"${'a'.repeat(65)}"}`]) {
      equal(refusalCode(400, problem, body), 'check:status');
    }
    equal(refusalCode(502, { 'Content-Type': 'text/html' }, '{"code":"x"}'), 'check:status');
  },
};

export default function () {
  for (const [name, test] of Object.entries(tests)) {
    try {
      test();
    } catch (error) {
      exec.test.abort(`${name}: ${error.message}`);
    }
  }
  console.log(`${Object.keys(tests).length} tests passed`);
}
