// Who `datum populate` has made: email and password of user n follow from n, the seed and the number of distinct password
// hashes, as crates/loadgen/src/dataset/identity.rs has it. ../../fixtures/users.json holds both sides to it.

export function populatedUser(datasetSeed, distinctPasswords, n) {
  return {
    email: `user-${String(n).padStart(9, '0')}.${datasetSeed}@populated.datum.example`,
    password: `populated password ${n % distinctPasswords} of ${datasetSeed}`,
  };
}

// The number of the user that virtual user `index` (from 0) of `virtualUsers` is, for a draw from [0, 1). Each virtual user
// draws from a share of its own, users index, index + virtualUsers, …: so no two are the same person at once, and how many
// persons there were can be counted without anything shared.
export function numberInShare(users, index, virtualUsers, draw) {
  if (index >= users) return index % users;
  const size = Math.ceil((users - index) / virtualUsers);
  return index + virtualUsers * Math.floor(draw * size);
}
