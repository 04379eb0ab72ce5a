package main

import "syscall"

// keepPrivate hides the variables, the memory and the open files of this process from all other processes of the
// same user, such as the programs that a step runs. Root can still see them. There is no core dump, and a debugger
// of that user cannot attach.
//
// It is the first thing that the process does. A process that lies in wait can read something only before that.
func keepPrivate() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0) // it fails for no value 0
}
