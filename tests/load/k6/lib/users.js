// Who the virtual users are. Each has an account of its own: one account for all would measure the cache of one row and the
// throttle of one login.

import { fail, sleep } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { Counter } from 'k6/metrics';

import { numberInShare, populatedUser } from './populated.js';
import { SET_UP, adopt, credentialsOf, params } from './requests.js';

// Distinct identities that sent requests of the mix.
const identities = new Counter('identities');

// Requests at once before the load: a task hashes a few passwords at once and sheds what waits too long.
const AT_ONCE = 4;
const ATTEMPTS = 10;

// Accounts of this run, so that two runs on one system do not meet.
function ownUser(runId, name) {
  return { email: `${name}.${runId}@load.datum.example`, password: `load password of ${name}` };
}

function populatedNumber(settings, number) {
  return populatedUser(settings.datasetSeed, settings.distinctPasswords, number);
}

function isShed(response) {
  return [429, 502, 503, 504].includes(response.status);
}

// Sends one request for each user, a few at once; those that were shed are sent again after the time that was asked for.
function forEach(settings, users, path, status, then) {
  const param = params(settings, SET_UP, `POST ${path}`, status, { 'Content-Type': 'application/json' });
  const waiting = users.map((user) => ({ user, attempts: 0 }));
  while (waiting.length > 0) {
    const some = waiting.splice(0, AT_ONCE);
    const batch = some.map(({ user }) => ['POST', `${settings.target}${path}`, credentialsOf(user), param]);
    let pause = 0;
    http.batch(batch).forEach((response, at) => {
      const { user, attempts } = some[at];
      if (response.status === status) {
        then(user, response);
      } else if (isShed(response) && attempts < ATTEMPTS) {
        waiting.push({ user, attempts: attempts + 1 });
        pause = Math.max(pause, Number(response.headers['Retry-After'] ?? 1));
      } else {
        fail(`set-up: POST ${path} for ${user.email}: ${response.status} ${response.error ?? ''} ${response.body ?? ''}`);
      }
    });
    if (pause > 0) sleep(pause);
  }
}

// Before the load: makes the accounts of the virtual users and logs them in, where the scenario wants it. What it returns
// reaches every virtual user.
export function prepare(scenario, settings) {
  exec.vu.metrics.tags.phase = 'set_up';
  const runId = `${Date.now().toString(36)}-${settings.seed.toString(36)}`;
  if (!scenario.needsUsers) return { runId, users: [] };

  const indexes = Array.from({ length: scenario.virtualUsers }, (_, index) => index);
  let users;
  if (scenario.populated) {
    users = indexes.map((index) =>
      populatedNumber(settings, numberInShare(settings.users, index, scenario.virtualUsers, 0)),
    );
  } else {
    users = indexes.map((index) => ownUser(runId, `vu-${index + 1}`));
    forEach(settings, users, '/v1/auth/register', 201, (user, response) => {
      user.id = response.json().id;
    });
  }
  if (scenario.tokensInSetUp) {
    forEach(settings, users, '/v1/auth/login', 200, (user, response) => adopt(user, response.json()));
  }
  return { runId, users };
}

// Somebody new, by the number that no other iteration has.
export function newcomer(run, iteration) {
  identities.add(1);
  return ownUser(run.runId, `iteration-${iteration}`);
}

// This virtual user's own state; k6 gives each a copy of this module.
let current;
const seen = new Set();

function used(user) {
  if (!seen.has(user.email)) {
    seen.add(user.email);
    identities.add(1);
  }
  return user;
}

// The person that this virtual user is at the moment.
export function sameUser(run) {
  current ??= run.users[exec.vu.idInTest - 1];
  return used(current);
}

// Who logs in next: with accounts of their own always the same person, of the populated users one that is drawn anew.
export function nextUser(scenario, settings, run, draw) {
  if (!scenario.populated) return sameUser(run);
  const index = exec.vu.idInTest - 1;
  return used(populatedNumber(settings, numberInShare(settings.users, index, scenario.virtualUsers, draw)));
}

// Whoever has logged in is who the virtual user is from now on; whose login failed stays who they were.
export function become(user) {
  current = user;
}
