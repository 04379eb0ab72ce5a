package aws

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// RegionOf returns the region in the name of the database's host, or else that of the function.
func RegionOf(host string, env Lookup) (string, error) {
	if region := cmp.Or(RegionIn(host), env.value("AWS_REGION"), env.value("AWS_DEFAULT_REGION")); region != "" {
		return region, nil
	}
	return "", fmt.Errorf("the region of the database is unknown: its host name %s does not contain it; set AWS_REGION", host)
}

// RDSToken returns the password of a database user that logs in by IAM: the signed URL (Signature
// Version 4, in the query) of a request to connect, without its scheme. It can be used to connect until
// 15 minutes after now. address is host:port with the server's own host name: the server refuses a
// token for an alias.
func RDSToken(c Credentials, region, address, user string, now time.Time) string {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	stamp, day := now.UTC().Format("20060102T150405Z"), now.UTC().Format("20060102")
	scope := day + "/" + region + "/rds-db/aws4_request"
	query := url.Values{
		"Action": {"connect"}, "DBUser": {user}, "X-Amz-Algorithm": {algorithm}, "X-Amz-Credential": {c.KeyID + "/" + scope},
		"X-Amz-Date": {stamp}, "X-Amz-Expires": {"900"}, "X-Amz-SignedHeaders": {"host"},
	}
	if c.SessionToken != "" {
		query.Set("X-Amz-Security-Token", c.SessionToken)
	}
	canonical := strings.ReplaceAll(query.Encode(), "+", "%20") // sorted by name; a blank must be %20 here
	request := "GET\n/\n" + canonical + "\nhost:" + address + "\n\nhost\n" + empty
	return address + "/?" + canonical + "&X-Amz-Signature=" + signature(c, stamp, region, "rds-db", request)
}
