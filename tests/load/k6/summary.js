// The end of a run: a short text for whoever watches, and everything k6 knows as JSON for whoever computes.

import { measuredSeconds } from './lib/scenario.js';

function values(data, name) {
  return data.metrics?.[name]?.values ?? {};
}

function ms(value) {
  return value === undefined ? '-' : value.toFixed(value < 100 ? 1 : 0);
}

function row(cells) {
  const [first, ...rest] = cells;
  return `  ${String(first).padEnd(10)}${rest.map((cell) => String(cell).padStart(10)).join('')}`;
}

function endpointRow(data, endpoint) {
  const tags = `{endpoint:${endpoint},phase:measure}`;
  const latency = values(data, `latency${tags}`);
  const percentiles = ['med', 'p(95)', 'p(99)', 'p(99.9)'].map((name) => (latency.count ? ms(latency[name]) : '-'));
  return row([endpoint, latency.count ?? 0, values(data, `failures${tags}`).count ?? 0, ...percentiles]);
}

function crossed(data) {
  return Object.entries(data.metrics ?? {}).flatMap(([metric, { thresholds }]) =>
    Object.entries(thresholds ?? {})
      .filter(([, { ok }]) => !ok)
      .map(([limit]) => `  LIMIT     ${metric}: ${limit} does not hold`),
  );
}

function loadOf({ model, thinkTime }) {
  return model.kind === 'closed'
    ? `closed, ${model.vus} virtual users, think time ${thinkTime.meanSeconds} s`
    : `open, ${model.arrivalsPerSecond} arrivals a second, at most ${model.vus} virtual users`;
}

function text(data, scenario, settings) {
  const seconds = measuredSeconds(scenario);
  const requests = scenario.mix.reduce(
    (sum, { endpoint }) => sum + (values(data, `http_reqs{endpoint:${endpoint},phase:measure}`).count ?? 0),
    0,
  );
  const dropped = values(data, 'dropped_iterations').count ?? 0;
  return [
    '',
    `${scenario.name}: ${scenario.question}`,
    `  target    ${settings.target}, seed ${settings.seed}`,
    `  load      ${loadOf(scenario)}, ${seconds} s measured`,
    `  requests  ${requests} in the measured phase, ${(requests / seconds).toFixed(2)} a second`,
    `  dropped   ${dropped} iterations`,
    `  identities ${values(data, 'identities').count ?? 0}`,
    ...crossed(data),
    '',
    row(['ms', 'right', 'failed', 'p50', 'p95', 'p99', 'p99.9']),
    ...scenario.mix.map(({ endpoint }) => endpointRow(data, endpoint)),
    '',
    '',
  ].join('\n');
}

export function summarise(data, scenario, settings) {
  const files = { stdout: text(data, scenario, settings) };
  if (settings.summaryFile) files[settings.summaryFile] = `${JSON.stringify(data, null, 2)}\n`;
  return files;
}
