package aws

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// AnswerMost is how many bytes of an answer Undone has to see: the longest of them names 500 records.
const AnswerMost = 64 << 10

// undone has the operations whose answer 200 may say that all, or a part, of what was asked for was not done, and the member
// that says so.
var undone = map[string]string{
	"AWSEvents.PutEvents":                          "FailedEntryCount",
	"AWSStepFunctions.StartSyncExecution":          "status",
	"AmazonEC2ContainerServiceV20141113.RunTask":   "failures",
	"AmazonEC2ContainerServiceV20141113.StartTask": "failures",
	"AmazonSQS.SendMessageBatch":                   "Failed",
	"DynamoDB_20120810.BatchWriteItem":             "UnprocessedItems",
	"Firehose_20150804.PutRecordBatch":             "FailedPutCount",
	"Kinesis_20131202.PutRecords":                  "FailedRecordCount",
}

// done are the values of such a member where all was done.
var done = []string{"null", "0", "[]", "{}", `"SUCCEEDED"`}

// failed matches the error with which S3 answers 200: a copy, or the end of an upload, takes so long that it begins to answer
// before, and of several objects that are to be deleted it may delete some.
var failed = lazyregexp.New(`<Error>(?:\s|<[A-Za-z]+>[^<]*</[A-Za-z]+>)*?<Code>([A-Za-z.]+)</Code>`)

// Undone returns what an answer 200 of a service says was not done; empty: it says nothing of that. sent are the headers of the
// request. The body may be cut.
func Undone(service, method string, sent, answer http.Header, body []byte) string {
	if failure := answer.Get("X-Amz-Function-Error"); failure != "" { // a function that was called has failed
		return "X-Amz-Function-Error is " + failure
	}
	if service == "s3" && method != http.MethodGet { // what it gets is an object, of whatever text
		if m := failed.FindStringSubmatch(string(body)); m != nil {
			return "Error is " + m[1]
		}
		return ""
	}
	member := undone[sent.Get("X-Amz-Target")]
	if member == "" {
		return ""
	}
	value := valueOf(body, member)
	var short bytes.Buffer
	if json.Compact(&short, value) != nil || slices.Contains(done, short.String()) {
		return ""
	}
	return member + " is " + short.String()
}

// valueOf returns a member of a JSON object, as far as the text goes.
func valueOf(body []byte, member string) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(body))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return nil
		}
		if name == member {
			return value
		}
	}
	return nil
}
