// The four requests of a mix, and what keeps a virtual user's token good beside it.

import crypto from 'k6/crypto';
import http from 'k6/http';

import { judge } from './outcome.js';

// What is sent beside the mix is counted apart from it.
export const SET_UP = 'set-up';

// A token is renewed when it has less than this left, or half of its life where that is shorter.
const RENEW_BEFORE_SECONDS = 60;

const JSON_BODY = { 'Content-Type': 'application/json' };

const known = {};

// What k6 is told with a request. Only the headers differ from one request of an endpoint to the next.
export function params(settings, endpoint, name, status, headers) {
  const constant = (known[`${endpoint} ${name}`] ??= {
    tags: { endpoint, name },
    timeout: `${settings.timeoutSeconds}s`,
    responseCallback: http.expectedStatuses(status),
    redirects: 0,
  });
  return { ...constant, headers };
}

export function credentialsOf(user) {
  return JSON.stringify({ email: user.email, password: user.password });
}

// Puts the tokens of an answer to a login or a refresh into the user.
export function adopt(user, tokens) {
  const margin = Math.min(RENEW_BEFORE_SECONDS, tokens.expires_in / 2);
  user.accessToken = tokens.access_token;
  user.refreshToken = tokens.refresh_token;
  user.renewAt = Date.now() + (tokens.expires_in - margin) * 1000;
}

function post(settings, path, body, endpoint, status) {
  return http.post(`${settings.target}${path}`, body, params(settings, endpoint, `POST ${path}`, status, JSON_BODY));
}

function areTokens({ token_type, access_token, refresh_token, expires_in }) {
  return /^bearer$/i.test(token_type) && access_token?.length > 0 && refresh_token?.length > 0 && expires_in > 0;
}

export function register(settings, user) {
  const response = post(settings, '/v1/auth/register', credentialsOf(user), 'register', 201);
  return judge(response, 'register', 201, { email: (body) => body.email === user.email });
}

// Asks for tokens; whether it got them.
function getTokens(settings, user, path, body, endpoint) {
  const tokens = judge(post(settings, path, body, endpoint, 200), endpoint, 200, { tokens: areTokens });
  if (tokens) adopt(user, tokens);
  return tokens !== null;
}

export function logIn(settings, user, endpoint = 'login') {
  return getTokens(settings, user, '/v1/auth/login', credentialsOf(user), endpoint);
}

function refresh(settings, user) {
  const body = JSON.stringify({ refresh_token: user.refreshToken });
  return getTokens(settings, user, '/v1/auth/refresh', body, SET_UP);
}

// The bearer header. A token that is missing or about to expire is renewed first, outside the mix; where that fails, the
// request that needs it fails with the server's own words.
function bearer(settings, user) {
  if (user.accessToken === undefined || Date.now() >= user.renewAt) {
    const renewed = user.refreshToken !== undefined && refresh(settings, user);
    if (!renewed) logIn(settings, user, SET_UP);
  }
  return `Bearer ${user.accessToken}`;
}

export function getUser(settings, user) {
  const headers = { Authorization: bearer(settings, user) };
  const path = '/v1/actors/me';
  const response = http.get(`${settings.target}${path}`, params(settings, 'get-user', `GET ${path}`, 200, headers));
  judge(response, 'get-user', 200, {
    // Cognito's access tokens state no email; then the actor has none.
    email: (body) => body.email === user.email || body.email === null,
    id: (body) => body.id === (user.id ??= body.id) && body.id.length > 0,
  });
}

const files = {};

// A file of that size, the same but for its first eight bytes: they hold the iteration's number, so that no two are equal.
function fileOf(bytes, iteration) {
  const file = (files[bytes] ??= Uint8Array.from({ length: bytes }, (_, at) => (at * 31 + (at >> 8)) & 0xff));
  const view = new DataView(file.buffer);
  if (bytes >= 8) view.setFloat64(0, iteration);
  return file.buffer;
}

export function upload(settings, user, bytes, iteration) {
  const file = fileOf(bytes, iteration);
  const headers = { Authorization: bearer(settings, user), 'Content-Type': 'application/octet-stream' };
  const path = '/v1/documents';
  const response = http.post(
    `${settings.target}${path}?name=load-${iteration}.bin`,
    file,
    params(settings, 'upload', `POST ${path}`, 201, headers),
  );
  judge(response, 'upload', 201, {
    sha256: (body) => body.sha256 === crypto.sha256(file, 'hex'),
    size: (body) => body.size_bytes === bytes,
  });
}
