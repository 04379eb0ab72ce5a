package main

import "syscall"

// dieWithParent has the kernel end the child when its keeper is killed.
func dieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
