// Package load has only tests of size: that no statement of a pass reads a table
// from end to end, that round trips, connections and memory do not grow with the number of jobs,
// that many runs are worked off and pruned in parts. What that costs, make bench measures.
package load
