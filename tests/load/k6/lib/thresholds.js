// What fails a run. Latency is that of right answers, and errors have a limit of their own: shedding load fast meets neither.
//
// A metric with an empty list has no limit; naming it is how k6 is told to keep its numbers apart for the summary.

import { STAGES } from './server_timing.js';

export function thresholds(scenario, settings) {
  const limits = {
    'errors{phase:measure}': [`rate<=${settings.errorRate}`],
    'checks{phase:measure}': [`rate>=${1 - settings.errorRate}`],
  };
  for (const { endpoint } of scenario.mix) {
    const tags = `{endpoint:${endpoint},phase:measure}`;
    limits[`latency${tags}`] = [`p(95)<${settings.p95Ms}`];
    for (const metric of ['http_reqs', 'failures', 'unattributed', ...STAGES.map((stage) => `stage_${stage}`)]) {
      limits[`${metric}${tags}`] = [];
    }
    // For readers who know only k6's own metrics.
    limits[`http_req_duration{endpoint:${endpoint},phase:measure,expected_response:true}`] = [];
    for (const metric of ['http_reqs', 'http_req_failed']) limits[`${metric}{endpoint:${endpoint}}`] = [];
  }
  limits['http_req_duration{phase:measure,expected_response:true}'] = [];
  // One identity for all virtual users voids a run.
  if (scenario.virtualUsers > 1) limits.identities = ['count>1'];
  // Work that was not even begun is missing from every other number.
  const overloads = scenario.phases.some((phase) => phase.factor > 1);
  if (scenario.model.kind === 'open' && !overloads) limits.dropped_iterations = ['count==0'];
  return limits;
}
