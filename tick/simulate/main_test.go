package simulate_test

import (
	"os"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
