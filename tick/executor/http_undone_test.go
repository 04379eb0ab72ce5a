package executor

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestHTTPAnswersOfAWSThatRefuse: a service of AWS answers 200 also where a function that it has called failed, or where it took
// only a part of what it was sent. The answers are in the form of the services' own references.
func TestHTTPAnswersOfAWSThatRefuse(t *testing.T) {
	many := strings.Repeat(`{"SequenceNumber": "49543463076548007577105092703039560359975228518395012686", "ShardId": "shardId-000000000000"}, `, 150)
	for _, c := range []struct{ name, target, header, body, want string }{
		{"lambda, failed", "", "Unhandled", `{"errorMessage": "2026-11-20 Task timed out after 3.00 seconds"}`,
			"the answer is 200 OK, but X-Amz-Function-Error is Unhandled: {\"errorMessage\": \"2026-11-20 Task timed out"},
		{"lambda", "", "", `{"Failed": ["its own"], "FailedEntryCount": 1}`, ""},
		{"events, refused", "AWSEvents.PutEvents", "", `{"FailedEntryCount": 1, "Entries": [{"ErrorCode": "MalformedDetail"}]}`, "but FailedEntryCount is 1: {"},
		{"events", "AWSEvents.PutEvents", "", `{"FailedEntryCount": 0, "Entries": [{"EventId": "11710aed"}]}`, ""},
		{"sqs, one refused", "AmazonSQS.SendMessageBatch", "", `{"Successful": [{"Id": "a"}], "Failed": [{"Id": "b", "SenderFault": true, "Code": "InvalidParameterValue"}]}`,
			`but Failed is [{"Id":"b","SenderFault":true,"Code":"InvalidParameterValue"}]`},
		{"sqs", "AmazonSQS.SendMessageBatch", "", `{"Successful": [{"Id": "a"}], "Failed": [ ]}`, ""},
		{"sqs, none failed", "AmazonSQS.SendMessageBatch", "", `{"Successful": [{"Id": "a"}]}`, ""},
		{"ecs, no place", "AmazonEC2ContainerServiceV20141113.RunTask", "", `{"failures": [{"reason": "RESOURCE:MEMORY"}], "tasks": []}`, `but failures is [{"reason":"RESOURCE:MEMORY"}]`},
		{"ecs", "AmazonEC2ContainerServiceV20141113.RunTask", "", `{"failures": [], "tasks": [{"taskArn": "arn:aws:ecs:eu-central-1:123456789012:task/jobs/1"}]}`, ""},
		{"kinesis, one of many", "Kinesis_20131202.PutRecords", "", `{"EncryptionType": "KMS", "Records": [` + many + `{"ErrorCode": "InternalFailure"}], "FailedRecordCount": 1}`, "but FailedRecordCount is 1"},
		{"firehose, cut", "Firehose_20150804.PutRecordBatch", "", `{"Encrypted": false, "FailedPutCount": 2, "RequestResponses": [` + strings.Repeat(many, 8), "but FailedPutCount is 2"},
		{"dynamodb, a part", "DynamoDB_20120810.BatchWriteItem", "", `{"UnprocessedItems": {"Forum": [{"PutRequest": {}}]}}`, `but UnprocessedItems is {"Forum"`},
		{"dynamodb", "DynamoDB_20120810.BatchWriteItem", "", `{"UnprocessedItems": {}}`, ""},
		{"states, failed", "AWSStepFunctions.StartSyncExecution", "", `{"error": "States.TaskFailed", "status": "FAILED"}`, `but status is "FAILED"`},
		{"states", "AWSStepFunctions.StartSyncExecution", "", `{"output": "{}", "status": "SUCCEEDED"}`, ""},
		{"states, of another", "AWSStepFunctions.DescribeExecution", "", `{"status": "FAILED"}`, ""},
		{"s3, copy failed", "PUT", "", `<?xml version="1.0" encoding="UTF-8"?>` + "\n\n" + `<Error><Code>InternalError</Code><Message>We encountered an internal error. Please try again.</Message></Error>`, "but Error is InternalError: <?xml"},
		{"s3, one not deleted", "POST", "", `<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code></Error></DeleteResult>`, "but Error is AccessDenied"},
		{"s3", "PUT", "", `<CopyObjectResult><ETag>"9b2cf535f27731c974343645a3985328"</ETag></CopyObjectResult>`, ""},
		{"s3, an object", "GET", "", `<Error><Code>InternalError</Code></Error>`, ""},
		{"no JSON", "AmazonSQS.SendMessageBatch", "", `<Failed>`, ""},
	} {
		x, _ := cloudThat(t, &Host{Clouds: []Cloud{{Name: "aws"}}}, credentials, func(w http.ResponseWriter, _ *http.Request) {
			if c.header != "" {
				w.Header().Set("X-Amz-Function-Error", c.header)
			}
			_, _ = w.Write([]byte(c.body))
		})
		spec := `{"url": "https://x.eu-central-1.amazonaws.com/", "headers": {"X-Amz-Target": "` + c.target + `"}, "json": {}, "auth": {"aws": {"service": "x"}}}`
		if strings.HasPrefix(c.name, "s3") { // the method is its operation
			spec = `{"url": "https://x.s3.eu-central-1.amazonaws.com/key", "method": "` + c.target + `", "auth": {"aws": {"service": "s3"}}}`
		}
		res, err := x.Execute(t.Context(), attempt(spec))
		failure, told := errors.AsType[*Error](err)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		case err != nil && (!told || failure.Code != "200" || !strings.Contains(res.Output, "200 OK")):
			t.Errorf("%s: %+v, %s", c.name, failure, res.Output)
		}
	}
}

// TestHTTPAnswersThatOnlyLookRefused: what another server answers means what that server says.
func TestHTTPAnswersThatOnlyLookRefused(t *testing.T) {
	s, _ := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Function-Error", "Handled")
		_, _ = w.Write([]byte(`{"FailedEntryCount": 1}`))
	})
	if _, err := execute(t, loopback(nil), `{"url": "`+s.URL+`", "headers": {"X-Amz-Target": "AWSEvents.PutEvents"}}`); err != nil {
		t.Error(err)
	}
}
