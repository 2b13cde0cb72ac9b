// Seeded random numbers: the same SEED gives the same mix, think times and users.

const MASK = (1n << 64n) - 1n;

// SplitMix64's output function (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
export function splitmix64(state) {
  let z = (state + 0x9e3779b97f4a7c15n) & MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

// Numbers from [0, 1), of one iteration or one virtual user. Its start comes from SplitMix64, so that neighbours have nothing
// in common; what follows is mulberry32 (Tommy Ettinger), which needs no 64-bit arithmetic.
export function streamOf(seed, number) {
  const start = splitmix64((seed ^ splitmix64(BigInt(number))) & MASK);
  let state = Number(start & 0xffffffffn) | 0;
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
