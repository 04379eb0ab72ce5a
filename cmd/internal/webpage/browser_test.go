package webpage

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a tab of a headless Chromium that the test controls by the DevTools protocol over two pipes.
type browser struct {
	t       *testing.T
	to      io.Writer
	session string
	last    int

	mu      sync.Mutex
	answers map[int]chan answer
	said    []string // errors and warnings of the console, and exceptions
	asked   []string // URLs of all requests
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// open starts the browser with a page of a given size. Outside of CI and make test, Chromium may be missing.
func open(t *testing.T, file string, width, height int, phone bool) *browser {
	t.Helper()
	root := os.Getenv("DBJOBS_TEST_CHROMIUM")
	if root == "" && testing.Short() { // as in make check
		t.Skip("DBJOBS_TEST_CHROMIUM is not set")
	}
	if root == "" {
		t.Fatal("DBJOBS_TEST_CHROMIUM is not set: `make test` finds or fetches Chromium and sets it")
	}
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join(root, "usr/lib/chromium/chromium-headless-shell"), "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
		"--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-dev-shm-usage", "--user-data-dir="+dir, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir, "TZ=Europe/Berlin")
	if root != "/" {
		libraries, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range libraries {
			libraries = append(libraries, filepath.Join(l, "pulseaudio"))
		}
		fonts := fmt.Sprintf(`<fontconfig><dir>%s</dir><cachedir>%s</cachedir></fontconfig>`, filepath.Join(root, "usr/share/fonts"), dir)
		if err := os.WriteFile(filepath.Join(dir, "fonts.conf"), []byte(fonts), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+strings.Join(libraries, ":"), "FONTCONFIG_FILE="+filepath.Join(dir, "fonts.conf"))
	}
	b := &browser{t: t, answers: map[int]chan answer{}}
	b.start(cmd)
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}, nil)
	b.call("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	b.wait(`document.readyState === "complete" && document.getElementById("jobs") !== null`)
	return b
}

// start starts Chromium, and reads its output until it ends with the test.
func (b *browser) start(cmd *exec.Cmd) {
	commands, to, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	from, events, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{commands, events} // 3 and 4
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	commands.Close()
	events.Close()
	b.to = to
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(bufio.NewReaderSize(from, 1<<20))
	}()
	b.t.Cleanup(func() {
		to.Close() // this ends it
		<-read
		_ = cmd.Wait() // its exit code does not matter
		from.Close()
	})
}

func (b *browser) read(from *bufio.Reader) {
	for {
		line, err := from.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			for _, c := range b.answers {
				close(c)
			}
			b.answers = nil
			b.mu.Unlock()
			return
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			answer
		}
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.answers[m.ID]; c != nil {
			c <- m.answer
			delete(b.answers, m.ID)
		}
		b.note(m.Method, m.Params)
		b.mu.Unlock()
	}
}

// note keeps the things that a page must not do.
func (b *browser) note(method string, params json.RawMessage) {
	var p struct {
		Type    string
		Request struct{ URL string }
		Entry   struct{ Level, Text string }
	}
	_ = json.Unmarshal(params, &p) // a message that does not fit is none of these
	switch method {
	case "Network.requestWillBeSent":
		b.asked = append(b.asked, p.Request.URL)
	case "Runtime.exceptionThrown":
		b.said = append(b.said, string(params))
	case "Runtime.consoleAPICalled":
		b.said = append(b.said, string(params))
	case "Log.entryAdded":
		b.said = append(b.said, p.Entry.Level+": "+p.Entry.Text)
	}
}

// call sends a command and reads its answer.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	c := make(chan answer, 1)
	b.mu.Lock()
	if b.answers == nil {
		b.mu.Unlock()
		b.t.Fatalf("%s: the browser has ended", method)
	}
	b.last++
	m := map[string]any{"id": b.last, "method": method, "params": params}
	if params == nil {
		m["params"] = map[string]any{}
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	b.answers[b.last] = c
	b.mu.Unlock()
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	select {
	case a, open := <-c:
		if !open {
			b.t.Fatalf("%s: the browser has ended", method)
		}
		if a.Error != nil {
			b.t.Fatalf("%s: %s", method, a.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(a.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
	case <-time.After(time.Minute):
		b.t.Fatalf("%s: no answer within a minute", method)
	}
}

// eval returns the value of an expression, as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails.Exception.Description)
	}
	return fmt.Sprint(r.Result.Value)
}

// wait waits until an expression is true.
func (b *browser) wait(expression string) {
	b.t.Helper()
	for range 1000 {
		if b.eval(expression) == "true" {
			return
		}
		b.eval(`new Promise(done => setTimeout(done, 20))`)
	}
	b.t.Fatalf("never true: %s", expression)
}

// press presses and releases a key.
func (b *browser) press(key string) {
	b.t.Helper()
	text := ""
	if len(key) == 1 {
		text = key
	}
	codes := map[string]int{"Tab": 9, "Enter": 13, " ": 32}
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": codes[key]}, nil)
	}
}

// shoot keeps a picture of the page from an element on, for people to look at, if DBJOBS_TEST_PICTURES names a folder.
func (b *browser) shoot(name, from string) {
	b.t.Helper()
	dir := os.Getenv("DBJOBS_TEST_PICTURES")
	if dir == "" {
		return
	}
	var r struct{ Data string }
	b.eval(`document.querySelector("` + from + `").scrollIntoView(); new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))`)
	b.call("Page.captureScreenshot", nil, &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
