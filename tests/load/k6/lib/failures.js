// What went wrong with a request, in the words of a result: status, code, who answered.

// k6's error codes (documentation, "Error codes"): 11xx DNS, 1210 to 1213 dialling, 13xx TLS.
function isConnecting(code) {
  return (code >= 1100 && code < 1200) || (code >= 1210 && code <= 1213) || (code >= 1300 && code < 1400);
}

// Why there is no whole answer.
export function transportCode(errorCode, message) {
  if (/context canceled|interrupted/i.test(message)) return 'interrupted';
  if (errorCode === 1050 || /request timeout|deadline exceeded/i.test(message)) return 'timeout';
  if (isConnecting(errorCode)) return 'connect';
  // 1200 to 1299: the connection broke. A server that closes it in mid-answer has no number of its own.
  if ((errorCode >= 1200 && errorCode < 1300) || /\bEOF\b|closed|reset|broken pipe/i.test(message)) return 'reset';
  return 'protocol';
}

// A task's answers carry Server-Timing; the balancer's own do not, and name it.
export function answerer(status, headers) {
  if (status === 0) return 'nobody';
  if (headers['Server-Timing'] !== undefined) return 'task';
  return /^(datum-balancer|awselb\/)/.test(headers.Server ?? '') ? 'balancer' : 'unknown';
}

// The code of an answer with another status than the expected one: the problem's (RFC 9457), where it is a problem with a
// code that is one. A service that is asked for too much must say when to come back (a balancer's own answers need not).
export function refusalCode(status, headers, body) {
  const sheds = status === 429 || status === 503;
  if (sheds && answerer(status, headers) === 'task' && !/^[0-9]+$/.test(headers['Retry-After'] ?? '')) return 'check:retry-after';
  const isProblem = (headers['Content-Type'] ?? '').startsWith('application/problem+json');
  try {
    const { code } = isProblem ? JSON.parse(body) : {};
    return typeof code === 'string' && /^[a-z0-9_]{1,64}$/.test(code) ? code : 'check:status';
  } catch {
    return 'check:status';
  }
}

// Whether the answer arrived whole: k6 numbers what broke on the way below 1400, and answers of 4xx and 5xx from there.
export function arrived(response) {
  return response.status !== 0 && !(response.error_code >= 1000 && response.error_code < 1400) && response.error_code < 1600;
}
