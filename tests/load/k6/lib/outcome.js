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

function fail(response, headers, endpoint, code) {
  const tags = { endpoint };
  errors.add(true, tags);
  failedLatency.add(response.timings.duration, tags);
  failures.add(1, { endpoint, status: String(response.status), code, answerer: answerer(response.status, headers) });
  return null;
}

function measure(response, headers, endpoint) {
  const tags = { endpoint };
  const { duration } = response.timings;
  errors.add(false, tags);
  latency.add(duration, tags);
  const times = parseServerTiming(headers['Server-Timing'] ?? '');
  for (const stage of Object.keys(times)) stages[stage].add(times[stage], tags);
  if (times.total !== undefined) unattributed.add(duration - times.total, tags);
}

// Judges an answer by its status and by `checks` of its JSON body, by name. The body if all is right, else null.
export function judge(response, endpoint, status, checks) {
  // Each look at the response is a conversion from another language: the headers are looked at once.
  const { headers } = response;
  const held = {};
  let wrong;
  let body;
  if (!arrived(response)) {
    wrong = transportCode(response.error_code, response.error ?? '');
    held[`${endpoint}: answered`] = false;
  } else if (response.status !== status) {
    wrong = refusalCode(response.status, headers, response.body);
    held[`${endpoint}: ${status}`] = false;
  } else {
    held[`${endpoint}: ${status}`] = true;
    body = parsed(response.body);
    const isBody = typeof body === 'object' && body !== null;
    held[`${endpoint}: body`] = isBody;
    if (!isBody) wrong = 'check:body';
    for (const name in isBody ? checks : {}) {
      const holds = checks[name](body) === true;
      held[`${endpoint}: ${name}`] = holds;
      if (!holds) wrong ??= `check:${name}`;
    }
  }
  check(undefined, held, { endpoint });
  if (wrong !== undefined) return fail(response, headers, endpoint, wrong);
  measure(response, headers, endpoint);
  return body;
}
