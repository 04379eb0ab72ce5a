package executor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// special has the address ranges that do not belong to the public internet, from IANA's registries of special purpose
// addresses. They include addresses of cloud services that only machines of the cloud can reach: 169.254.169.254 and
// fd00:ec2::254 (metadata of AWS, Google and Azure), 100.100.100.200 (Alibaba), and 168.63.129.16 (Azure), which is in no
// registry. Of IPv6, only 2000::/3 is public.
var special = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

var (
	publicIPv6 = netip.MustParsePrefix("2000::/3")
	nat64      = netip.MustParsePrefix("64:ff9b::/96") // the last four bytes are an IPv4 address, and the connection goes there
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// public reports whether an address belongs to the public internet.
func public(a netip.Addr) bool {
	if a = a.Unmap(); nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.Is6() && (a.Zone() != "" || !publicIPv6.Contains(a)) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsValid()
}

// guardedTransport makes connections for the jobs of one owner: to public addresses, and to addresses that the host allows
// this owner.
//
// Each address is checked just before the connection is made, after all look-ups. So the check also catches a name that leads
// elsewhere at the next look-up, a redirect, and an unusual way to write an address. A connection that is kept is used for the
// same owner only. No proxy is used, even if the environment names one: the connections of a proxy would not be checked.
func guardedTransport(h *Host, owner string, names *net.Resolver) *http.Transport {
	d := &net.Dialer{Timeout: dialTimeout, Resolver: names, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("the address %q: %w", address, err)
		}
		return h.allowsConnection(owner, to.Addr())
	}}
	return &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 4, IdleConnTimeout: idleConnection,
	}
}

// idleConnection is how long a connection is kept for the next request. Servers close theirs after some seconds, often after five, and a
// request that is under way then may have been received: it fails, and is not sent again.
const idleConnection = time.Second

// dialTimeout bounds how long it takes to make a connection.
const dialTimeout = 20 * time.Second

// allowsConnection refuses connections to an address that is neither public nor allowed to the owner.
func (h *Host) allowsConnection(owner string, a netip.Addr) error {
	if public(a) || h.AllowsAddress(owner, a) {
		return nil
	}
	return h.Refused("connections to "+a.String(), fmt.Sprintf("addresses: [%s]", a.Unmap().WithZone("")))
}
