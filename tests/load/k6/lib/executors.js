// A scenario as k6's executors: closed is `ramping-vus`, open is `ramping-arrival-rate`.

// For requests that are under way when the load ends.
const GRACE = '60s';

// Arrival rates are whole numbers to k6; a tenth of an arrival a second is one in ten.
const ARRIVALS_UNIT_SECONDS = 10;

// Phases as stages. A level that begins without a ramp before it is a stage of no length.
function stages(phases, levelOf) {
  const all = [];
  let level = 0;
  for (const phase of phases) {
    const target = levelOf(phase.factor);
    const ramps = phase.kind === 'ramp' || phase.kind === 'ramp_down';
    if (!ramps && target !== level) all.push({ target, duration: '0s' });
    all.push({ target, duration: `${phase.seconds}s` });
    level = target;
  }
  return all;
}

export function executor(scenario) {
  const { model, phases } = scenario;
  if (model.kind === 'closed') {
    return {
      executor: 'ramping-vus',
      startVUs: 0,
      stages: stages(phases, (factor) => Math.ceil(model.vus * factor)),
      gracefulRampDown: GRACE,
      gracefulStop: GRACE,
    };
  }
  return {
    executor: 'ramping-arrival-rate',
    startRate: 0,
    timeUnit: `${ARRIVALS_UNIT_SECONDS}s`,
    stages: stages(phases, (factor) => Math.round(model.arrivalsPerSecond * factor * ARRIVALS_UNIT_SECONDS)),
    // All before the load begins: making one in the middle of it takes CPU from the others, and iterations are dropped.
    preAllocatedVUs: model.vus,
    maxVUs: model.vus,
    gracefulStop: GRACE,
  };
}
