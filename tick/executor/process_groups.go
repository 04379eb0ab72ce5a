//go:build unix

package executor

import (
	"errors"
	"sync"
	"syscall"
)

// groups are process groups in which a program has run. The program has ended and has been waited for, and other processes of
// its group may be left.
//
// If this process is process 1 of a container, the kernel makes these processes its children as soon as their parents have
// ended. When they have ended, too, they are zombies until this process waits for them, and their group is not gone. Anywhere
// else they are the children of another process, and there is nothing to wait for.
//
// Processes that have left their group are not waited for: a child that ends could be one for which other code waits. Only an
// init in the container can tell.
type groups struct {
	mu   sync.Mutex
	list map[int]bool
}

// leftOver has the groups of this process.
var leftOver = groups{list: map[int]bool{}}

// add adds the group of a program that has been waited for.
func (g *groups) add(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list[group] = true
}

// reap waits for the processes of the groups that have ended, and never for one that lives. It forgets the groups that are
// gone. This has to happen before a program starts: a new group may have the number of one that is gone, and to wait for it
// would take the end of the program away from runGroup.
func (g *groups) reap() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for group := range g.list {
		for {
			if pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
		if gone(group) {
			delete(g.list, group)
		}
	}
}

// gone reports whether a group has no process, not even a zombie.
func gone(group int) bool { return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }
