package store

// The words that policies may have, as they stand in manifests and in the database.
const (
	OverlapWait    = "wait"     // one run at a time; a nominal time waits, and the next one becomes a gap
	OverlapWaitAll = "wait-all" // one run at a time; all others wait
	OverlapSkip    = "skip"     // a nominal time becomes a gap while a run is active
	OverlapAllow   = "allow"    // up to max_running runs at a time
	OverlapReplace = "replace"  // a new run replaces the active one

	MissedLatest = "latest" // the newest missed nominal time runs
	MissedAll    = "all"    // the newest missed_limit of them run
	MissedSkip   = "skip"   // the newest one runs, but only within missed_grace

	OnErrorContinue = "continue"
	OnErrorPause    = "pause" // a failed run pauses the job

	StepNext    = "next"    // on_success and on_failure: go on with the next step
	StepSucceed = "succeed" // the run ends as succeeded
	StepFail    = "fail"    // the run ends as failed
	StepNamed   = "step:"   // followed by the name of the step to go on with

	attemptsUntilNext = "until-next" // try until the job's next nominal time

	NonexistentForward = "forward" // a wall time that a clock change leaves out moves forward
	NonexistentSkip    = "skip"
	AmbiguousFirst     = "first" // of a wall time that a clock change repeats
	AmbiguousLast      = "last"
	AmbiguousBoth      = "both"
)

// The values of held_by: why a waiting run is not queued.
const (
	HeldByPause       = "pause"
	HeldByPredecessor = "predecessor" // an earlier run of the job
	HeldByGroup       = "group"
)
