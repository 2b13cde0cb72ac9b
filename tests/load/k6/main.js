// Runs one of ../scenarios/*.json with k6 (v1 and v2). What each variable means: ../README.md.
//
//   k6 run -e SCENARIO=baseline-mix -e TARGET=http://127.0.0.1:8080 main.js

import { sleep } from 'k6';
import exec from 'k6/execution';
import { Gauge } from 'k6/metrics';

import { executor } from './lib/executors.js';
import { exponential, seedOf, streamOf } from './lib/random.js';
import { getUser, logIn, register, upload } from './lib/requests.js';
import { endpointFor, parseScenario, phaseAt } from './lib/scenario.js';
import { readSettings } from './lib/settings.js';
import { thresholds } from './lib/thresholds.js';
import { become, newcomer, nextUser, prepare, sameUser } from './lib/users.js';
import { summarise } from './summary.js';

const settings = readSettings(__ENV);
// `open` is called here and nowhere else: a relative path means the same to every version of k6 in the main file only.
const scenario = parseScenario(open(settings.scenarioFile), settings);
const seed = seedOf(settings.seed);

// When second 0 of the load was, in milliseconds since 1970: set-up took its time before.
const loadBegan = new Gauge('load_began');

export const options = {
  scenarios: { [scenario.name]: executor(scenario) },
  thresholds: thresholds(scenario, settings),
  summaryTrendStats: ['count', 'min', 'avg', 'med', 'p(90)', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
  // 400 registrations and logins on a quarter of a core take minutes.
  setupTimeout: '30m',
  batch: 4,
  batchPerHost: 4,
  // Each tag is repeated in every line of `--out json`; what is left out here says nothing that a result needs.
  systemTags: ['status', 'method', 'name', 'check', 'error_code', 'scenario', 'expected_response', 'group'],
  userAgent: 'datum-k6',
};

export function setup() {
  return prepare(scenario, settings);
}

export default function iterate(run) {
  const iteration = exec.scenario.iterationInTest;
  if (iteration === 0) loadBegan.add(exec.scenario.startTime);
  enter(phaseAt(scenario, (Date.now() - exec.scenario.startTime) / 1000));

  // From the iteration's number and not from the virtual user's: the sequence is the same whoever runs it.
  const random = streamOf(seed, iteration);
  const part = endpointFor(scenario, random());
  switch (part.endpoint) {
    case 'register':
      register(settings, newcomer(run, iteration));
      break;
    case 'login': {
      const user = nextUser(scenario, settings, run, random());
      if (logIn(settings, user)) become(user);
      break;
    }
    case 'get-user':
      getUser(settings, sameUser(run));
      break;
    case 'upload':
      upload(settings, sameUser(run), part.bytes, iteration);
      break;
  }
  think(random());
}

// Every metric of a virtual user carries the phase. Tags are dear: they are touched when they change.
let current;

function enter(phase) {
  if (phase === current) return;
  current = phase;
  const { tags } = exec.vu.metrics;
  tags.phase = phase.kind;
  if (phase.name) tags.step = phase.name;
  else delete tags.step;
}

function think(draw) {
  const { distribution, meanSeconds } = scenario.thinkTime;
  if (scenario.model.kind !== 'closed' || meanSeconds === 0) return;
  sleep(distribution === 'exponential' ? exponential(draw, meanSeconds) : meanSeconds);
}

export function handleSummary(data) {
  return summarise(data, scenario, settings);
}
