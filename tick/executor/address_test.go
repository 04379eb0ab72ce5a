package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

// nameServer is a DNS server. For any name, it answers with the result of answer at the time of the question.
func nameServer(t *testing.T, answer func() []netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := nameReply(buf[:n], answer); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// always is an answer that never changes.
func always(list ...string) func() []netip.Addr {
	return func() (all []netip.Addr) {
		for _, a := range list {
			all = append(all, netip.MustParseAddr(a))
		}
		return all
	}
}

// nameReply answers one question, for an address of either family, with a record that must not be cached.
func nameReply(query []byte, answer func() []netip.Addr) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	if end+5 > len(query) {
		return nil
	}
	kind := query[end+2]
	reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end+5]...)
	if kind != 1 && kind != 28 {
		return reply
	}
	for _, a := range answer() {
		if a.Is4() == (kind == 1) {
			reply[7]++
			reply = append(reply, 0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 0, 0, byte(a.BitLen()/8))
			reply = append(reply, a.AsSlice()...)
		}
	}
	return reply
}

// TestPublicAddresses tries the first and the last address of each range that is not public, and their neighbours.
func TestPublicAddresses(t *testing.T) {
	for list, want := range map[string]bool{
		"0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 100.100.100.200 127.0.0.1 127.255.255.255 168.63.129.16": false,
		"169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.192 192.168.0.0 192.168.255.255 198.18.0.0":         false,
		"192.0.2.1 198.51.100.1 203.0.113.1 192.88.99.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255":                               false,
		":: ::1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::8.8.8.8":         false,
		"fc00:: fd00:ec2::254 fe80::1 fe80::1%lo fec0::1 ff02::1 2001::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 100::1":  false,
		"1.0.0.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.0.1":       true,
		"172.32.0.0 192.167.255.255 192.169.0.0 8.8.8.8 223.255.255.255 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2001:4860:4860::8888 2a00::1":      true,
	} {
		for text := range strings.FieldsSeq(list) {
			if a := netip.MustParseAddr(text); public(a) != want {
				t.Errorf("%s: %t, want %t", a, !want, want)
			}
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// inside is a server that no job may reach.
func inside(t *testing.T, host string) (port string, reached *atomic.Int32) {
	t.Helper()
	reached = &atomic.Int32{}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) })}}
	s.Start()
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, reached
}

// TestForbiddenAddresses: a forbidden address is refused at the time of the connection, however it is written, named or
// reached. If the host allows these addresses, the same ways lead to the server.
func TestForbiddenAddresses(t *testing.T) {
	port, reached := inside(t, "")
	local := nameServer(t, always("127.0.0.1"))
	metadata := nameServer(t, always("169.254.169.254"))
	metadata6 := nameServer(t, always("fd00:ec2::254"))
	for _, c := range []struct {
		host, address string // the host as it is written; the address that is refused. Empty: it depends; unknown: some resolvers know no such name
		names         *net.Resolver
		served        bool // by the server inside
	}{
		{"127.0.0.1", "127.0.0.1", nil, true},
		{"127.9.8.7", "127.9.8.7", nil, true},
		{"localhost", "", nil, true},
		{"[::ffff:127.0.0.1]", "", nil, true},
		{"[::ffff:7f00:1]", "", nil, true},
		{"0.0.0.0", "", nil, true},
		{"2130706433", "unknown", nil, false}, // in the form that C's resolver reads
		{"0x7f000001", "127.0.0.1", local, true},
		{"0177.0.0.1", "unknown", nil, false},
		{"localhost.", "unknown", nil, false},
		{"１２７.0.0.1", "127.0.0.1", nil, true}, // digits of another alphabet, which become ASCII digits
		{"127。0。0。1", "127.0.0.1", nil, true},
		{"[::127.0.0.1]", "::7f00:1", nil, false},
		{"[::ffff:0:7f00:1]", "::ffff:0:7f00:1", nil, false},
		{"[64:ff9b:1::7f00:1]", "64:ff9b:1::7f00:1", nil, false},
		{"[64:ff9b::7f00:1]", "64:ff9b::7f00:1", nil, false},
		{"198.18.0.1", "198.18.0.1", nil, false},
		{"192.0.0.192", "192.0.0.192", nil, false}, // metadata of Oracle's older machines
		{"[ff02::1]", "ff02::1", nil, false},
		{"[2001:0:7f00:1::]", "2001:0:7f00:1::", nil, false}, // Teredo
		{"mixed.example.org", "", nameServer(t, always("127.0.0.1", "::1", "169.254.169.254")), true},
		{"127.1", "unknown", nil, false},
		{"example.org", "127.0.0.1", local, true},
		{"169.254.169.254", "169.254.169.254", nil, false},
		{"metadata.google.internal", "169.254.169.254", metadata, false},
		{"instance-data.ec2.internal", "fd00:ec2::254", metadata6, false},
		{"[fd00:ec2::254]", "fd00:ec2::254", nil, false},
		{"[::ffff:169.254.169.254]", "", nil, false},
		{"[64:ff9b::a9fe:a9fe]", "64:ff9b::a9fe:a9fe", nil, false},
		{"[2002:a9fe:a9fe::]", "2002:a9fe:a9fe::", nil, false},
		{"100.100.100.200", "100.100.100.200", nil, false},
		{"[fe80::1%25lo]", "fe80::1%lo", nil, false},
		{"10.1.2.3", "10.1.2.3", nil, false},
		{"224.0.0.1", "224.0.0.1", nil, false},
	} {
		spec := fmt.Sprintf(`{"url": "http://%s:%s/"}`, c.host, port)
		x := NewHTTP(&Host{Settings: "dbjobs-host.yaml"})
		x.names = c.names
		_, err := x.Execute(t.Context(), attempt(spec))
		if _, unknown := errors.AsType[*RefusedError](err); c.address == "unknown" && err != nil && !unknown {
			if !strings.Contains(err.Error(), "was not found") {
				t.Errorf("%s: %v", c.host, err)
			}
		} else if _, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(err.Error(), strings.TrimPrefix(c.address, "unknown")+"; ") || !strings.Contains(err.Error(), "dbjobs-host.yaml") {
			t.Errorf("%s: %v", c.host, err)
		}
		if n := reached.Load(); n > 0 {
			t.Fatalf("%s: reached %d times", c.host, n)
		}
		if c.served {
			allowed := NewHTTP(&Host{Addresses: []Addresses{{Range: netip.MustParsePrefix("127.0.0.0/8")}, {Range: netip.MustParsePrefix("::/0")}, {Range: netip.MustParsePrefix("0.0.0.0/32")}}})
			allowed.names = c.names
			if _, err := allowed.Execute(t.Context(), attempt(spec)); err != nil || reached.Swap(0) != 1 {
				t.Errorf("%s, allowed: %v", c.host, err)
			}
			allowed.Close()
		}
		x.Close()
	}
}

// TestANameThatLeadsElsewhere: the address of a name is checked at the time of the connection, and not at an earlier
// look-up.
func TestANameThatLeadsElsewhere(t *testing.T) {
	port, reached := inside(t, "127.0.0.1")
	l, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip("this machine has one loopback address: ", err)
	}
	asked := &atomic.Int32{}
	outside := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })}}
	outside.Start()
	t.Cleanup(outside.Close)
	x := NewHTTP(&Host{Addresses: []Addresses{{Range: netip.MustParsePrefix("127.0.0.2/32")}}})
	defer x.Close()
	x.names = nameServer(t, func() []netip.Addr {
		if asked.Add(1) <= 2 { // one question for each family
			return always("127.0.0.2")()
		}
		return always("127.0.0.1")()
	})
	spec := `{"url": "http://rebind.example:` + port + `/"}`
	if _, err := x.Execute(t.Context(), attempt(spec)); err != nil {
		t.Fatal(err)
	}
	_, err = x.Execute(t.Context(), attempt(spec))
	if _, ok := errors.AsType[*RefusedError](err); !ok || reached.Load() > 0 {
		t.Errorf("reached %d times: %v", reached.Load(), err)
	}
}

// TestANameWithSeveralAddresses: only the allowed addresses of a name are connected to, whatever their order and
// family.
func TestANameWithSeveralAddresses(t *testing.T) {
	port, reached := inside(t, "127.0.0.1")
	l, err := net.Listen("tcp", "127.0.0.3:"+port)
	if err != nil {
		t.Skip("this machine has one loopback address: ", err)
	}
	served := &atomic.Int32{}
	outside := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) })}}
	outside.Start()
	t.Cleanup(outside.Close)
	for i, list := range [][]string{{"127.0.0.1", "127.0.0.3"}, {"127.0.0.3", "127.0.0.1"}, {"::1", "127.0.0.1", "127.0.0.3"}} {
		x := NewHTTP(&Host{Addresses: []Addresses{{Range: netip.MustParsePrefix("127.0.0.3/32")}}})
		x.names = nameServer(t, always(list...))
		_, err := x.Execute(t.Context(), attempt(`{"url": "http://mixed.example:`+port+`/"}`))
		if err != nil || reached.Load() > 0 || int(served.Load()) != i+1 {
			t.Errorf("%v: %v; the one inside was reached %d times, the other %d", list, err, reached.Load(), served.Load())
		}
		x.Close()
	}
}

// TestConnectionsAreOfOneOwner: a connection that was made with one owner's permission is not used for another owner.
func TestConnectionsAreOfOneOwner(t *testing.T) {
	s, got := receiver(t, nil)
	x := NewHTTP(&Host{Addresses: []Addresses{{Range: netip.MustParsePrefix("127.0.0.1/32"), Owners: Owners{"ann"}}}})
	defer x.Close()
	r := attempt(`{"url": "` + s.URL + `"}`)
	for range 2 {
		if _, err := x.Execute(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	r.Task.Job.Owner = "bob"
	if _, err := x.Execute(t.Context(), r); err == nil || len(got()) != 2 {
		t.Errorf("%v, %d requests", err, len(got()))
	}
}

// TestNoProxy: there is no proxy, because the connections of a proxy would not be checked.
func TestNoProxy(t *testing.T) {
	proxy, got := receiver(t, nil)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	if _, err := execute(t, loopback(nil), `{"url": "http://169.254.169.254/"}`); err == nil || len(got()) > 0 {
		t.Errorf("%v, %d requests", err, len(got()))
	}
}
