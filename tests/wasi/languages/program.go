// A program of Go's own compiler for WASI: its scheduler, collector and standard library.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"
)

type record struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func main() {
	fmt.Println("arguments", os.Args[1:])
	fmt.Println("variable", os.Getenv("GREETING"))
	var group sync.WaitGroup
	parts := make(chan string, 8)
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func(i int) { defer group.Done(); time.Sleep(time.Millisecond); parts <- fmt.Sprint(i * i) }(i)
	}
	group.Wait()
	close(parts)
	var all []string
	for part := range parts {
		all = append(all, part)
	}
	sort.Strings(all)
	fmt.Println("goroutines", strings.Join(all, " "))
	dir := "/new"
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		fmt.Println("mkdir", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a/b/file"), []byte("one\ntwo\n"), 0o644); err != nil {
		fmt.Println("write", err)
	}
	file, err := os.Open(filepath.Join(dir, "a/b/file"))
	if err != nil {
		fmt.Println("open", err)
		os.Exit(3)
	}
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fmt.Println("line", scanner.Text())
	}
	var records []record
	filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			records = append(records, record{path, info.Size()})
		}
		return err
	})
	text, _ := json.Marshal(records)
	fmt.Println(string(text))
	fmt.Printf("%x\n", sha256.Sum256(text))
	_, err = os.Open(filepath.Join(dir, "absent"))
	fmt.Println(err)
	os.RemoveAll(dir)
	defer func() { fmt.Println("recovered", recover()); os.Exit(7) }()
	var nothing *record
	fmt.Println(nothing.Name)
}
