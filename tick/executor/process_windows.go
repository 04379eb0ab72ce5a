package executor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// searchPath has the folders of the system. Where other programs are differs from host to host.
var searchPath = strings.ReplaceAll(`ROOT\System32;ROOT;ROOT\System32\Wbem;ROOT\System32\WindowsPowerShell\v1.0`, "ROOT", systemRoot())

func systemRoot() string {
	if root := os.Getenv("SystemRoot"); root != "" {
		return root
	}
	return `C:\Windows`
}

// inherited has, besides the zone, what each program of Windows may expect: where the system, the user and temporary files are.
var inherited = []string{"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "USERNAME", "USERDOMAIN",
	"COMPUTERNAME", "APPDATA", "LOCALAPPDATA", "ProgramData", "ProgramFiles", "ProgramFiles(x86)", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "TZ"}

// passing has the errors of a start that may pass.
var passing = []syscall.Errno{windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_TOO_MANY_OPEN_FILES, windows.ERROR_NO_SYSTEM_RESOURCES,
	windows.ERROR_COMMITMENT_LIMIT, windows.ERROR_SHARING_VIOLATION}

const (
	errTooLong   = windows.ERROR_FILENAME_EXCED_RANGE
	errNoProgram = windows.ERROR_BAD_EXE_FORMAT
)

// fileNames returns the names of the files that a program without a folder may have.
func fileNames(name string) []string {
	if starts(name) {
		return []string{name}
	}
	return []string{name + ".exe", name + ".com"}
}

func mayExecute(info os.FileInfo) bool { return info.Mode().IsRegular() }

func samePath(a, b string) bool { return strings.EqualFold(a, b) }

// starts reports whether the system starts the file itself. It gives a batch file to cmd.exe, which would execute parts of the
// arguments: no way of quoting prevents that.
func starts(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".exe" || ext == ".com"
}

// startable refuses a file that needs another program.
func startable(path string) error {
	switch ext := strings.ToLower(strings.TrimRight(path, ". ")); {
	case starts(path):
		return nil
	case path == shellPath:
		return fmt.Errorf(`Windows has no /bin/sh: write exec instead of shell, with a program and its arguments as a list, ` +
			`such as exec: [powershell.exe, -NoProfile, -File, 'C:\jobs\tidy.ps1']`)
	case strings.HasSuffix(ext, ".bat"), strings.HasSuffix(ext, ".cmd"):
		return fmt.Errorf("the program %s is a batch file, to which arguments cannot be passed safely; let cmd.exe run it, "+
			"without references among the arguments: exec: [cmd.exe, /d, /c, %s]", quoted(path), path)
	case strings.HasSuffix(ext, ".ps1"):
		return fmt.Errorf("the program %s is a script; let powershell.exe run it: exec: [powershell.exe, -NoProfile, -File, %s]", quoted(path), path)
	}
	return fmt.Errorf("the program %s is no .exe or .com; let the program run it that can read it", quoted(path))
}

// KeepFiles does nothing: a program gets no file but those that are given to it.
func KeepFiles() {}

// apart gives the program a process group, so that it can be asked to end, and Ctrl-C for the tick does not reach it.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// ask asks the program and what it has started to end, by Ctrl-Break: most runtimes handle it as they handle SIGTERM elsewhere.
// It fails if this process has no console.
func ask(group int) bool {
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(group)) == nil
}

func kill(group int) { watching.kill(group) }

func gone(group int) bool { return watching.active(group) == 0 }

// asksToEnd reports whether a program was ended by Ctrl-Break or Ctrl-C, or by the end of its console. A program that is killed ends so, too.
func asksToEnd(p *os.ProcessState) bool {
	return uint32(p.ExitCode()) == uint32(windows.STATUS_CONTROL_C_EXIT)
}

func exited(p *os.ProcessState) bool { return !asksToEnd(p) }

// watch has the job object of each program that runs: all processes that the program starts are in it, too. The system kills
// them when the last handle of the job is closed, as it is when this process ends, in any way.
//
// Crash window: a process that the program starts before add has come to it is outside of the job.
type watch struct {
	mu   sync.Mutex
	jobs map[int]windows.Handle
}

// watching is the watch of this process.
var watching = watch{jobs: map[int]windows.Handle{}}

func (w *watch) begin() error { return nil }

// add puts a program into a job. If the system refuses that, only the program itself is killed.
func (w *watch) add(pid int) {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return
	}
	defer windows.CloseHandle(process)
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	if limit(job, windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE) != nil || windows.AssignProcessToJobObject(job, process) != nil {
		windows.CloseHandle(job)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[pid] = job
}

// remove lets what the program has left in the background go on.
func (w *watch) remove(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if job, found := w.jobs[pid]; found {
		delete(w.jobs, pid)
		_ = limit(job, 0) // if this fails, the background ends here
		windows.CloseHandle(job)
	}
}

// limit sets the limits of a job. A process may leave it if it asks for that, as a daemon leaves its group.
func limit(job windows.Handle, flags uint32) error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = flags | windows.JOB_OBJECT_LIMIT_BREAKAWAY_OK
	_, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return err
}

func (w *watch) kill(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if job, found := w.jobs[pid]; found {
		_ = windows.TerminateJobObject(job, uint32(windows.STATUS_CONTROL_C_EXIT)) // all may have ended just now
	}
}

// active returns how many processes of a program's job live.
func (w *watch) active(pid int) uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var info struct { // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
		_              [4]int64 // times
		_, _           uint32   // page faults, all processes
		active, killed uint32
	}
	job, found := w.jobs[pid]
	if !found || windows.QueryInformationJobObject(job, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil) != nil {
		return 0
	}
	return info.active
}

// groups does nothing here: a process leaves no zombie.
type groups struct{}

var leftOver groups

func (groups) add(int) {}
func (groups) reap()   {}

// replaceable finds nothing here: access lists say who may write, and they are not read.
func replaceable(string) string { return "" }
