package engine

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestNamesOfASQLiteFile: a file that processes may open by two names, or in two folders, gets a warning. Symbolic links lead to one name.
func TestNamesOfASQLiteFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("hard links are not counted there")
	}
	base := t.TempDir()
	file, link := filepath.Join(base, "jobs.db"), filepath.Join(base, "link.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, filepath.Join(base, "missing.db")} {
		if told := sqliteProblem("sqlite:" + path); told != "" {
			t.Errorf("%s: %s", path, told)
		}
	}
	if err := os.Link(file, filepath.Join(base, "second.db")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, filepath.Join(base, "second.db")} {
		if told := sqliteProblem("sqlite:" + path); !strings.Contains(told, "has 2 names") {
			t.Errorf("%s: %q", path, told)
		}
	}
}

// The mount that has a file tells if that is mounted without its folder, and if it is on a network file system.
func TestMountOfASQLiteFile(t *testing.T) {
	lines := []byte(`22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
36 22 8:1 /srv/my\040jobs.db /data/my\040jobs.db rw - ext4 /dev/sda1 rw
37 22 0:50 / /srv rw - ext4 /dev/sdb1 rw
38 37 0:51 / /srv/efs rw shared:2 master:1 - nfs4 fs-1.efs.example.org:/ rw
39 37 0:52 / /srv/efs/local rw - tmpfs tmpfs rw
40 22 0:53 / /mnt/bucket rw - fuse.gcsfuse bucket rw
41 22 0:54 / /mnt/s3 rw - fuse mountpoint-s3 rw
42 22 0:55 / /mnt/share rw - cifs //host/share rw
43 22 0:56 / /home/u/crypt rw - fuse.gocryptfs /home/u/.crypt rw
44 22 0:57 / /desktop rw - virtiofs host rw
45 22 0:58 / /over rw - nfs4 host:/ rw
46 45 0:59 / /over rw - xfs /dev/sdc1 rw
47 22 0:60 / /mnt/cephfs rw - fuse.ceph-fuse ceph-fuse rw
48 22 0:61 / /mnt/dav rw - fuse https://dav.example.org/files rw
49 22 not a line
`)
	for path, want := range map[string]string{
		"/data/my jobs.db": "mounted without its folder", "/data/jobs.db": "", "/srv/my jobs.db": "", "/srv/jobs.db": "",
		"/srv/efs/jobs.db": "(nfs4)", "/srv/efs/deep/jobs.db": "(nfs4)", "/srv/efs2/jobs.db": "", "/srv/efs/local/jobs.db": "",
		"/mnt/bucket/jobs.db": "(gcsfuse)", "/mnt/s3/jobs.db": "(mountpoint-s3)", "/mnt/share/jobs.db": "(cifs)",
		"/mnt/cephfs/jobs.db": "(ceph-fuse)", "/mnt/dav/jobs.db": "(https://dav.example.org/files)",
		"/home/u/crypt/jobs.db": "", "/desktop/jobs.db": "", "/over/jobs.db": "",
	} {
		if told := mountProblem(lines, path); (told == "") != (want == "") || !strings.Contains(told, want) {
			t.Errorf("%s: %q, want %q", path, told, want)
		}
	}
}

// A URL names a file with a drive, of Windows alone: elsewhere that is a name like others.
func TestDriveInASQLiteURL(t *testing.T) {
	for _, c := range [][3]string{{"windows", "/C:/jobs.db", "C:/jobs.db"}, {"windows", `C:\jobs.db`, `C:\jobs.db`}, {"windows", "/srv/jobs.db", "/srv/jobs.db"}, {"linux", "/C:/jobs.db", "/C:/jobs.db"}} {
		if got := ofDrive(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %s is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
