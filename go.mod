module github.com/dbjobs/dbjobs

go 1.26
