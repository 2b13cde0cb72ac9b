// What a task says about where the time went: `Server-Timing: pool;dur=0.1, db;dur=2.5, …, total;dur=3.0`, in milliseconds
// (W3C Server Timing).

export const STAGES = ['admission', 'pool', 'db', 'hash', 'idp', 's3', 'verify', 'app', 'total'];

// Milliseconds by stage; what is no stage or no duration is left out.
export function parseServerTiming(header) {
  const times = {};
  for (const entry of header.split(',')) {
    const [name, ...parameters] = entry.split(';').map((part) => part.trim());
    const duration = parameters.find((parameter) => parameter.startsWith('dur='));
    const ms = duration === undefined ? NaN : Number.parseFloat(duration.slice('dur='.length));
    if (STAGES.includes(name) && ms >= 0) times[name] = ms;
  }
  return times;
}
