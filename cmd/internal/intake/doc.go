// Package intake turns what another scheduler has into a manifest. There is a package below it for each
// source; this one has what they share: a list of items, the reader of a cron line, and models of what
// schedulers do when clocks change.
//
// Three things are promised. Every line or object of the source is accounted for: it is a job, or it is
// named with the reason why not. What changes its meaning is said beside the job. And "apply --dry-run"
// takes the manifest: each job is read back before it counts as imported.
package intake
