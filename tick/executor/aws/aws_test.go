package aws

import (
	"testing"
	"time"
)

func environment(vars map[string]string) Lookup {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// TestRDSToken: the first token is the published vector of another implementation (the tests of CPAN's
// Signer::AWSv4::RDS), the second one what AWS's own SDK for Go signs, with what has to be escaped.
func TestRDSToken(t *testing.T) {
	for _, c := range []struct {
		c                     Credentials
		region, address, user string
		now                   time.Time
		want                  string
	}{
		{Credentials{"AKIAKIAKIAKIAKIAKIAK", "1111111111111111111111111111111111111111", ""}, "eu-west-1",
			"mydb.c1fycpveg7nf.us-west-2.rds.amazonaws.com:3306", "mysqluser", time.Date(2018, 7, 22, 20, 22, 36, 0, time.UTC),
			"mydb.c1fycpveg7nf.us-west-2.rds.amazonaws.com:3306/?Action=connect&DBUser=mysqluser&X-Amz-Algorithm=AWS4-HMAC-SHA256" +
				"&X-Amz-Credential=AKIAKIAKIAKIAKIAKIAK%2F20180722%2Feu-west-1%2Frds-db%2Faws4_request&X-Amz-Date=20180722T202236Z" +
				"&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=b77c366f1379046852039d21f733035fa73696275c03dd2908ef267c3049d831"},
		{Credentials{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "IQoJ//b3J+pZ2lu=="}, "eu-central-1",
			"db.cluster-abc.eu-central-1.rds.amazonaws.com:5432", "jobs + ü/~user", time.Date(2026, 1, 5, 9, 0, 0, 0, time.FixedZone("", 3600)),
			"db.cluster-abc.eu-central-1.rds.amazonaws.com:5432/?Action=connect&DBUser=jobs%20%2B%20%C3%BC%2F~user&X-Amz-Algorithm=AWS4-HMAC-SHA256" +
				"&X-Amz-Credential=AKIDEXAMPLE%2F20260105%2Feu-central-1%2Frds-db%2Faws4_request&X-Amz-Date=20260105T080000Z" +
				"&X-Amz-Expires=900&X-Amz-Security-Token=IQoJ%2F%2Fb3J%2BpZ2lu%3D%3D&X-Amz-SignedHeaders=host" +
				"&X-Amz-Signature=ca2477860bb5f31caf14b7e1a1ebb811ba251f92655fb2e5c0b57a698c15718b"},
	} {
		if got := RDSToken(c.c, c.region, c.address, c.user, c.now); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestRegionOf(t *testing.T) {
	for _, c := range []struct {
		host, variable, want string
	}{
		{"mydb.c1fycpveg7nf.us-west-2.rds.amazonaws.com", "eu-west-1", "us-west-2"},
		{"p.proxy-abc.cn-north-1.rds.amazonaws.com.cn", "", "cn-north-1"},
		{"mydb.c1fycpveg7nf.rds.cn-northwest-1.amazonaws.com.cn", "us-east-1", "cn-northwest-1"},
		{"db.us-gov-west-1.rds.amazonaws.com", "", "us-gov-west-1"},
		{"mydb.c1fycpveg7nf.eusc-de-east-1.rds.amazonaws.eu", "eu-west-1", "eusc-de-east-1"},
		{"mydb.c1fycpveg7nf.us-isob-east-1.rds.sc2s.sgov.gov", "eu-west-1", "us-isob-east-1"},
		{"vpce-0a1b-2c3d.sqs.eu-west-1.vpce.amazonaws.com", "us-east-1", "eu-west-1"},
		{"search-logs-abc.eu-west-1.es.amazonaws.com", "us-east-1", "eu-west-1"},
		{"jobs.s3.us-west-2.amazonaws.com", "us-east-1", "us-west-2"},
		{"iam.amazonaws.com", "us-east-1", "us-east-1"},
		{"mydb.eu-central-1.rds.amazonaws.com.example.org", "eu-west-1", "eu-west-1"},
		{"db.internal", "eu-west-1", "eu-west-1"},
		{"db.internal", "", ""},
	} {
		got, err := RegionOf(c.host, environment(map[string]string{"AWS_REGION": c.variable}))
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v, want %q", c.host, got, err, c.want)
		}
	}
}
