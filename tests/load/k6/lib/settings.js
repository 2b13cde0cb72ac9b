// The environment, read once: numbers are numbers, and what is wrong is said before any load is sent.

function number(environment, name, fallback, lowest) {
  const text = environment[name];
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  if (!Number.isFinite(value) || value < lowest) {
    throw new Error(`${name} must be a number of at least ${lowest}, not '${text}'`);
  }
  return value;
}

function whole(environment, name, fallback, lowest) {
  const value = number(environment, name, fallback, lowest);
  if (value !== undefined && !Number.isInteger(value)) throw new Error(`${name} must be a whole number`);
  return value;
}

function scenarioFile(environment) {
  const file = environment.SCENARIO_FILE;
  if (file && file.startsWith('/')) return file;
  // k6 would take a relative path from the script's folder; whoever types one means their own.
  if (file && environment.PWD) return `${environment.PWD}/${file}`;
  if (file) throw new Error(`SCENARIO_FILE must be an absolute path here, not '${file}'`);
  const name = environment.SCENARIO;
  if (!name || !/^[a-z0-9-]+$/.test(name)) {
    throw new Error('SCENARIO names one of tests/load/scenarios, such as baseline-mix, or SCENARIO_FILE a file');
  }
  return `../scenarios/${name}.json`;
}

function target(environment) {
  const url = environment.TARGET || 'http://127.0.0.1:8080';
  if (!/^https?:\/\/[^/]+\/?$/.test(url)) throw new Error(`TARGET must be a base URL such as http://127.0.0.1:8080, not '${url}'`);
  return url.replace(/\/$/, '');
}

function seed(environment) {
  const text = environment.SEED || '1';
  if (!/^\d{1,20}$/.test(text)) throw new Error(`SEED must be a whole number, not '${text}'`);
  return BigInt.asUintN(64, BigInt(text));
}

export function readSettings(environment) {
  return {
    scenarioFile: scenarioFile(environment),
    target: target(environment),
    seed: seed(environment),
    vus: whole(environment, 'VUS', undefined, 1),
    ratePerSecond: number(environment, 'RATE', undefined, 0.01),
    rampSeconds: whole(environment, 'RAMP_SECONDS', undefined, 0),
    warmUpSeconds: whole(environment, 'WARM_UP_SECONDS', undefined, 0),
    measureSeconds: whole(environment, 'MEASURE_SECONDS', undefined, 1),
    thinkTimeSeconds: number(environment, 'THINK_TIME_SECONDS', undefined, 0),
    users: whole(environment, 'USERS', undefined, 1),
    datasetSeed: seed({ SEED: environment.DATASET_SEED }),
    distinctPasswords: whole(environment, 'PASSWORDS', 64, 1),
    timeoutSeconds: number(environment, 'TIMEOUT_SECONDS', 60, 0.1),
    p95Ms: number(environment, 'P95_MS', 2000, 1),
    errorRate: number(environment, 'ERROR_RATE', 0.001, 0),
    summaryFile: environment.SUMMARY_FILE === undefined ? 'k6-summary.json' : environment.SUMMARY_FILE,
  };
}
