// Seeded random numbers: the same SEED gives the same mix, think times and users.

// MurmurHash3's finaliser (Austin Appleby): each bit of the input changes half of the output's.
function mixed(value) {
  let z = value | 0;
  z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
  z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
  return z ^ (z >>> 16);
}

// The halves of a 64-bit seed, mixed: it is done once, because arithmetic of that width is slow here.
export function seedOf(number) {
  return mixed(Number(number & 0xffffffffn) + mixed(Number(number >> 32n) + 1));
}

// Numbers from [0, 1), of one iteration. Its start is mixed, so that neighbours have nothing in common; what follows is
// mulberry32 (Tommy Ettinger).
export function streamOf(seed, number) {
  let state = mixed(seed ^ mixed(number));
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let z = Math.imul(state ^ (state >>> 15), state | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 4294967296;
  };
}

// An exponentially distributed value for a uniform draw from [0, 1), by inversion.
export function exponential(draw, mean) {
  return -Math.log(1 - draw) * mean;
}
