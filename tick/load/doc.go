// Package load has only tests and benchmarks of size: that no statement of a pass reads a table
// from end to end, that round trips, connections and memory do not grow with the number of jobs,
// that many runs are worked off and pruned in parts, and what that costs.
package load
