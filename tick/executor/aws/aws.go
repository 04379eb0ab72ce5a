// Package aws finds the credentials of the process on AWS: Source asks what the platform has for it. It
// signs requests to AWS with them, and makes the token with which a function or a task logs in to RDS;
// it also gets a secret from the extension that caches it beside a function.
//
// It does not use the SDK, whose packages for these would be a large part of what a cold start loads.
// The credentials are needed for each new connection, and cost a call on the loopback interface, or of
// the machine's network, or a few hashes.
package aws

import (
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

func (env Lookup) value(name string) string {
	v, _ := env(name)
	return v
}

// Endpoint returns the URL of the API of a service that the environment gives, and the variable that has it: the one of the
// service, such as AWS_ENDPOINT_URL_S3, or else the one of all. Both are empty if that is the usual API.
func (env Lookup) Endpoint(service string) (url, variable string) {
	for _, name := range []string{"AWS_ENDPOINT_URL_" + service, "AWS_ENDPOINT_URL"} {
		if v := env.value(name); v != "" {
			return v, name
		}
	}
	return "", ""
}

// partitions are the parts of AWS whose APIs have a domain of their own, by how the names of their regions begin.
var partitions = []struct{ regions, domain string }{
	{"cn-", "amazonaws.com.cn"}, {"eusc-", "amazonaws.eu"},
	{"us-iso-", "c2s.ic.gov"}, {"us-isob-", "sc2s.sgov.gov"}, {"eu-isoe-", "cloud.adc-e.uk"}, {"us-isof-", "csp.hci.ic.gov"}, {"eu-isof-", "csp.hci.ic.gov"},
}

// Domain returns the domain of the APIs in a region.
func Domain(region string) string {
	for _, p := range partitions {
		if strings.HasPrefix(region, p.regions) {
			return p.domain
		}
	}
	return "amazonaws.com"
}

// regionOfHost finds the region in the name of a host: of a service, or, before the name of the service, of an instance, cluster or
// proxy of RDS, a domain of OpenSearch, or an endpoint in a VPC.
var regionOfHost = lazyregexp.New(`\.([a-z]{2,4}(?:-[a-z]+)+-\d+)\.(?:[a-z0-9-]+\.)?` +
	`(?:amazonaws\.com(?:\.cn)?|amazonaws\.eu|c2s\.ic\.gov|sc2s\.sgov\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov|api\.aws|on\.aws)$`)

// RegionIn returns the region in the name of a host of AWS; empty: the name has none.
func RegionIn(host string) string {
	if m := regionOfHost.FindStringSubmatch(host); m != nil {
		return m[1]
	}
	return ""
}
