// Loads an API server and prints what it managed, as one line of JSON.
//
//	apiload -url URL -token TOKEN -mode get|list|create|patch|watch|fill [-clients N] [-seconds S] [-count N]
//
// HTTP/2 where the server offers it, as client-go does; answers are JSON and read to their end, not decoded.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pods    = "/api/v1/namespaces/default/pods"
	writers = 8
)

var (
	url     = flag.String("url", "", "")
	token   = flag.String("token", "", "")
	mode    = flag.String("mode", "get", "")
	clients = flag.Int("clients", 1, "")
	seconds = flag.Float64("seconds", 3, "")
	count   = flag.Int("count", 1000, "objects to fill with, or events of a watch")
	tag     = flag.String("tag", "a", "part of the names that are created")
)

// client has connections of its own: n of these are n clients.
func client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4,
	}}
}

func ask(c *http.Client, method, path, media string, body []byte) *http.Response {
	request, err := http.NewRequest(method, *url+path, bytes.NewReader(body))
	must(err)
	request.Header.Set("Authorization", "Bearer "+*token)
	request.Header.Set("Accept", "application/json")
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	response, err := c.Do(request)
	must(err)
	return response
}

func call(c *http.Client, method, path, media string, body []byte, want int) {
	response := ask(c, method, path, media, body)
	defer response.Body.Close()
	if response.StatusCode != want {
		text, _ := io.ReadAll(response.Body)
		must(fmt.Errorf("%s %s: %d %.300s", method, path, response.StatusCode, text))
	}
	buffer := buffers.Get().(*[1 << 16]byte)
	defer buffers.Put(buffer)
	_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, buffer[:])
	must(err)
}

// buffers are used again: collecting those of large answers would take longer than receiving them.
var buffers = sync.Pool{New: func() any { return new([1 << 16]byte) }}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiload:", err)
		os.Exit(1)
	}
}

// pod is of ordinary size: two containers with resources, environment and a volume, 1.5 KB.
func pod(name string) []byte {
	container := func(name string) map[string]any {
		amounts := map[string]any{"cpu": "100m", "memory": "128Mi"}
		return map[string]any{
			"name": name, "image": "registry.example.com/team/" + name + ":1.2.3", "args": []string{"--level=info"},
			"env":          []any{map[string]any{"name": "REGION", "value": "eu-1"}},
			"ports":        []any{map[string]any{"containerPort": 8080, "name": name}},
			"resources":    map[string]any{"requests": amounts, "limits": amounts},
			"volumeMounts": []any{map[string]any{"name": "data", "mountPath": "/data"}},
		}
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app": "load", "tier": "front"}},
		"spec": map[string]any{
			"automountServiceAccountToken": false,
			"containers":                   []any{container("web"), container("side")},
			"volumes":                      []any{map[string]any{"name": "data", "emptyDir": map[string]any{}}},
		},
	})
	must(err)
	return text
}

func main() {
	flag.Parse()
	switch *mode {
	case "fill":
		fill()
	case "watch":
		fanOut()
	default:
		load()
	}
}

func fill() {
	var next atomic.Int64
	var group sync.WaitGroup
	for range *clients {
		group.Go(func() {
			c := client()
			for i := next.Add(1); i <= int64(*count); i = next.Add(1) {
				name := fmt.Sprintf("%s-%06d", *tag, i)
				call(c, "POST", pods, "application/json", pod(name), 201)
			}
		})
	}
	group.Wait()
	tell(map[string]any{"objects": *count})
}

func load() {
	var group sync.WaitGroup
	var lock sync.Mutex
	var times []float64
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	began := time.Now()
	for number := range *clients {
		group.Go(func() {
			c, mine := client(), []float64{}
			for i := 0; time.Now().Before(end); i++ {
				start := time.Now()
				one(c, number, i)
				mine = append(mine, float64(time.Since(start).Microseconds()))
			}
			lock.Lock()
			times = append(times, mine...)
			lock.Unlock()
		})
	}
	group.Wait()
	sort.Float64s(times)
	at := func(share float64) float64 { return times[min(len(times)-1, int(share*float64(len(times))))] }
	tell(map[string]any{"rate": float64(len(times)) / time.Since(began).Seconds(), "p50_us": at(0.5), "p99_us": at(0.99)})
}

func one(c *http.Client, number, i int) {
	existing := fmt.Sprintf("%s/fill-%06d", pods, number%1000+1)
	switch *mode {
	case "get":
		call(c, "GET", existing, "", nil, 200)
	case "list":
		call(c, "GET", pods+"?labelSelector=app%3Dload&limit=1000", "", nil, 200)
	case "create":
		name := fmt.Sprintf("%s-%d-%d", *tag, number, i)
		call(c, "POST", pods, "application/json", pod(name), 201)
	case "patch":
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"load":"%s-%d"}}}`, *tag, i)
		call(c, "PATCH", existing, "application/merge-patch+json", body, 200)
	default:
		must(fmt.Errorf("there is no mode %q", *mode))
	}
}

// fanOut lets `clients` watchers receive `count` changes that eight writers make; the rate is deliveries per second.
func fanOut() {
	response := ask(client(), "GET", pods+"?limit=1", "", nil)
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	must(json.NewDecoder(response.Body).Decode(&list))
	response.Body.Close()
	var ready, done sync.WaitGroup
	for range *clients {
		ready.Add(1)
		done.Go(func() {
			path := pods + "?watch=true&resourceVersion=" + list.Metadata.ResourceVersion
			response := ask(client(), "GET", path, "", nil)
			defer response.Body.Close()
			lines := bufio.NewReaderSize(response.Body, 1<<16)
			ready.Done()
			for range *count {
				_, err := lines.ReadSlice('\n')
				must(err)
			}
		})
	}
	ready.Wait()
	began := time.Now()
	var next atomic.Int64
	for number := range writers {
		done.Go(func() {
			c := client()
			for i := next.Add(1); i <= int64(*count); i = next.Add(1) {
				body := fmt.Appendf(nil, `{"metadata":{"annotations":{"fan":"%s-%d"}}}`, *tag, i)
				path := fmt.Sprintf("%s/fill-%06d", pods, number+1)
				call(c, "PATCH", path, "application/merge-patch+json", body, 200)
			}
		})
	}
	done.Wait()
	tell(map[string]any{"rate": float64(*clients**count) / time.Since(began).Seconds()})
}

func tell(found map[string]any) { must(json.NewEncoder(os.Stdout).Encode(found)) }
