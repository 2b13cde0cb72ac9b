// What a task says about where the time went: `Server-Timing: pool;dur=0.1, db;dur=2.5, …, total;dur=3.0`, in milliseconds
// (W3C Server Timing).

export const STAGES = ['admission', 'pool', 'db', 'hash', 'idp', 's3', 'verify', 'app', 'total'];

// Milliseconds by stage; what is no stage or no duration is left out.
export function parseServerTiming(header) {
  const times = {};
  for (const entry of header.split(',')) {
    const duration = entry.indexOf(';dur=');
    const name = entry.slice(0, entry.indexOf(';')).trim();
    const ms = duration < 0 ? NaN : Number.parseFloat(entry.slice(duration + ';dur='.length));
    if (ms >= 0 && STAGES.includes(name)) times[name] = ms;
  }
  return times;
}
