// Package load has only tests of size. No statement of a pass reads a table from end to end. Round
// trips, connections and memory do not grow with the number of jobs. Many runs are executed and pruned
// in parts. `make bench` measures what that costs.
package load
