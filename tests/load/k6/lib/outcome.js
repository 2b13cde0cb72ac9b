// What became of a request of the mix: latency of the right answers, causes of the others, and where the server says the
// time went. Latency is kept of right answers only, so that a refusal that comes fast improves nothing.

import { check } from 'k6';
import { Counter, Rate, Trend } from 'k6/metrics';

import { answerer, arrived, refusalCode, transportCode } from './failures.js';
import { STAGES, parseServerTiming } from './server_timing.js';

const latency = new Trend('latency', true);
const failedLatency = new Trend('failed_latency', true);
const unattributed = new Trend('unattributed', true);
const stages = Object.fromEntries(STAGES.map((stage) => [stage, new Trend(`stage_${stage}`, true)]));
const failures = new Counter('failures');
const errors = new Rate('errors');

function parsed(body) {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function fail(response, endpoint, code) {
  errors.add(true, { endpoint });
  failedLatency.add(response.timings.duration, { endpoint });
  failures.add(1, { endpoint, status: String(response.status), code, answerer: answerer(response) });
  return null;
}

function measure(response, endpoint) {
  errors.add(false, { endpoint });
  latency.add(response.timings.duration, { endpoint });
  const times = parseServerTiming(response.headers['Server-Timing'] ?? '');
  for (const stage of Object.keys(times)) stages[stage].add(times[stage], { endpoint });
  if (times.total !== undefined) unattributed.add(response.timings.duration - times.total, { endpoint });
}

// Judges an answer by its status and by `checks` of its JSON body, by name. The body if all is right, else null.
export function judge(response, endpoint, status, checks) {
  if (!arrived(response)) {
    check(response, { [`${endpoint}: answered`]: () => false }, { endpoint });
    return fail(response, endpoint, transportCode(response.error_code, response.error ?? ''));
  }
  const isExpected = { [`${endpoint}: ${status}`]: (answer) => answer.status === status };
  if (!check(response, isExpected, { endpoint })) return fail(response, endpoint, refusalCode(response));

  const body = parsed(response.body);
  let wrong;
  for (const [name, holds] of Object.entries({ body: (it) => it !== undefined && it !== null, ...checks })) {
    const named = { [`${endpoint}: ${name}`]: (it) => wrong === undefined && holds(it) };
    if (!check(body, named, { endpoint })) wrong = wrong ?? name;
  }
  if (wrong !== undefined) return fail(response, endpoint, `check:${wrong}`);
  measure(response, endpoint);
  return body;
}
