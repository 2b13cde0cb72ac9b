// A scenario file with the overrides of the environment: the load model, its phases in seconds, its mix.
// The native driver is the judge of what is valid; here only what k6 would misunderstand is refused.

const ENDPOINTS = ['get-user', 'upload', 'login', 'register'];
const PHASES = ['ramp', 'warm_up', 'measure', 'ramp_down'];

function secondsOf(phase, settings) {
  const overrides = {
    ramp: settings.rampSeconds,
    ramp_down: settings.rampSeconds,
    warm_up: settings.warmUpSeconds,
    measure: settings.measureSeconds,
  };
  return overrides[phase.kind] ?? phase.seconds;
}

// The phases with the second at which each is over; those without length are left out.
function timeline(phases, settings) {
  let until = 0;
  return phases
    .map((phase) => {
      if (!PHASES.includes(phase.kind)) throw new Error(`phases: '${phase.kind}' is no kind of phase`);
      const factor = phase.factor ?? (phase.kind === 'ramp_down' ? 0 : 1);
      return { kind: phase.kind, name: phase.name, factor, seconds: secondsOf(phase, settings) };
    })
    .filter((phase) => phase.seconds > 0)
    .map((phase) => ({ ...phase, until: (until += phase.seconds) }));
}

function modelOf(model, settings) {
  switch (model.kind) {
    case 'closed':
      return { kind: 'closed', vus: settings.vus ?? model.vus };
    case 'open':
      return {
        kind: 'open',
        arrivalsPerSecond: settings.ratePerSecond ?? model.arrivals_per_second,
        vus: settings.vus ?? model.max_vus,
      };
    default:
      throw new Error(`model.kind is closed or open, not '${model.kind}'`);
  }
}

export function parseScenario(text, settings) {
  const file = JSON.parse(text);
  const model = modelOf(file.model, settings);
  const mix = file.mix.map((part) => {
    if (!ENDPOINTS.includes(part.endpoint)) throw new Error(`mix: '${part.endpoint}' is no endpoint`);
    if (!(part.weight > 0)) throw new Error(`mix: the weight of ${part.endpoint} must be above 0`);
    if (part.endpoint === 'upload' && !Number.isInteger(part.bytes)) throw new Error('mix: upload needs bytes');
    return part;
  });
  const phases = timeline(file.phases, settings);
  const populated = file.identities === 'populated';
  if (populated && !settings.users) throw new Error('USERS must say how many users `datum populate` has made');
  return {
    name: file.name,
    question: file.question,
    model,
    mix,
    totalWeight: mix.reduce((sum, part) => sum + part.weight, 0),
    thinkTime: {
      distribution: file.model.think_time?.distribution ?? 'constant',
      meanSeconds: settings.thinkTimeSeconds ?? file.model.think_time?.mean_seconds ?? 0,
    },
    phases,
    // Closed: those of the highest level. Open: the most in flight.
    virtualUsers:
      model.kind === 'open' ? model.vus : Math.ceil(model.vus * Math.max(...phases.map((phase) => phase.factor))),
    populated,
    tokensInSetUp: file.tokens === 'set_up',
    // A mix of registrations alone needs nobody who is there before.
    needsUsers: mix.some((part) => part.endpoint !== 'register'),
  };
}

// The phase at that many seconds after the load began; iterations that start in the last moment belong to the last phase.
export function phaseAt(scenario, seconds) {
  return scenario.phases.find((phase) => seconds < phase.until) ?? scenario.phases[scenario.phases.length - 1];
}

// The part of the mix that a uniform draw from [0, 1) falls on.
export function endpointFor(scenario, draw) {
  let rest = draw * scenario.totalWeight;
  return scenario.mix.find((part) => (rest -= part.weight) < 0) ?? scenario.mix[scenario.mix.length - 1];
}

export function measuredSeconds(scenario) {
  return scenario.phases.filter((phase) => phase.kind === 'measure').reduce((sum, phase) => sum + phase.seconds, 0);
}
