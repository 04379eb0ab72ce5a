package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sqliteProblem says what is wrong with the names and the place of a file, and what to do; empty: nothing. SQLite keeps the log of the file (-wal)
// beside the name by which a process has opened it, symbolic links apart. Processes that open one file in two folders, or by two names,
// do not see the other's log, and not its locks on it: each of them does all runs, and they damage the file. So do those of two machines,
// since they share no memory for the index of the log.
func sqliteProblem(rawURL string) string {
	path, _, err := sqlitePath(rawURL)
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	if n := hardLinks(path); n > 1 {
		return fmt.Sprintf("the file %s has %d names (hard links). SQLite keeps a log for each name, so processes that use different ones do all runs twice, and damage the file: "+
			"leave one name, and make the others symbolic links", path, n)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo") // of Linux
	if err != nil {
		return ""
	}
	return mountProblem(mounts, path)
}

// mountProblem says what is wrong with the place of a file, by the lines of mountinfo (proc_pid_mountinfo(5)).
func mountProblem(mountinfo []byte, path string) string {
	switch point, system := mountOf(mountinfo, path); {
	case point == path:
		return fmt.Sprintf("the file %s is mounted without its folder. SQLite keeps its log beside it, so processes that see the file in another folder do all runs twice, and damage it, "+
			"and the log is lost with the container: mount the folder", path)
	case network[system] || strings.Contains(system, "://"):
		return fmt.Sprintf("the file %s is on a network file system (%s). SQLite's log works on one machine only: processes on others do all runs twice, and damage the file; "+
			"keep it on a disk of one machine, or take a server", path, system)
	}
	return ""
}

// network has the file systems that several machines may share. Those by which a machine shows its own folders to its containers
// or virtual machines, such as virtiofs and 9p, are not among them, and neither are most of FUSE's.
var network = map[string]bool{
	"nfs": true, "nfs4": true, "cifs": true, "smb3": true, "smbfs": true, "afs": true, "ceph": true, "ceph-fuse": true, "lustre": true, "beegfs": true, "glusterfs": true,
	"sshfs": true, "gcsfuse": true, "s3fs": true, "mountpoint-s3": true, "goofys": true, "blobfuse": true, "blobfuse2": true, "rclone": true, "juicefs": true,
}

// mountOf returns where the file system is mounted that has a path, and its name. FUSE has the name of the program, or for some
// programs, such as davfs2, the URL of what is mounted. Of two at one place, the later one hides the other.
func mountOf(mountinfo []byte, path string) (point, system string) {
	plain := strings.NewReplacer(`\134`, `\`, `\040`, " ", `\011`, "\t", `\012`, "\n")
	for line := range strings.Lines(string(mountinfo)) {
		mount, kind, found := strings.Cut(line, " - ")
		left, right := strings.Fields(mount), strings.Fields(kind)
		if !found || len(left) < 5 || len(right) < 2 {
			continue
		}
		at := plain.Replace(left[4])
		if len(at) < len(point) || path != at && !strings.HasPrefix(path, strings.TrimSuffix(at, "/")+"/") {
			continue
		}
		if point, system = at, strings.TrimPrefix(right[0], "fuse."); system == "fuse" {
			system = right[1]
		}
	}
	return point, system
}
