// The two parts of hack/bench/admission.py that must not be Python: a minimal webhook to compare with, and the load.
//
//	admission serve -cert FILE -key FILE            serves, and prints its address
//	admission load  -url URL -ca FILE -name HOST -body FILE ...   asks, and prints what it saw as JSON
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("admission: serve or load")
	}
	switch os.Args[1] {
	case "serve":
		serve(os.Args[2:])
	case "load":
		load(os.Args[2:])
	default:
		log.Fatalf("admission: %q is neither serve nor load", os.Args[1])
	}
}

type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID    string          `json:"uid"`
	Object json.RawMessage `json:"object"`
}

type response struct {
	UID       string `json:"uid"`
	Allowed   bool   `json:"allowed"`
	PatchType string `json:"patchType,omitempty"`
	Patch     []byte `json:"patch,omitempty"`
}

// serve allows everything, with the same patch if there is one: what is left is net/http, crypto/tls and encoding/json.
func serve(args []string) {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	cert := flags.String("cert", "", "certificate, PEM")
	key := flags.String("key", "", "its key, PEM")
	file := flags.String("patch", "", "JSON patch of every answer")
	_ = flags.Parse(args)
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	var patch []byte
	if err == nil && *file != "" {
		patch, err = os.ReadFile(*file)
	}
	if err != nil {
		log.Fatal(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plain.Addr())
	// HTTP/1.1 only, as the apiserver speaks to webhooks.
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	server := &http.Server{Handler: allow(patch), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.Serve(tls.NewListener(plain, config)))
}

func allow(patch []byte) http.HandlerFunc {
	kind := ""
	if patch != nil {
		kind = "JSONPatch"
	}
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 7<<20))
		var asked review
		if err == nil {
			err = json.Unmarshal(body, &asked)
		}
		if err != nil || asked.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		answer := review{asked.APIVersion, asked.Kind, nil, &response{asked.Request.UID, true, kind, patch}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

type result struct {
	Answers  map[int]int `json:"answers"`
	Failures []string    `json:"failures"`
	Seconds  float64     `json:"seconds"`
	P50      float64     `json:"p50"`
	P99      float64     `json:"p99"`
	Longest  float64     `json:"longest"`
}

type run struct {
	client *http.Client
	url    string
	body   []byte
	retry  bool

	mutex     sync.Mutex
	answers   map[int]int
	failures  []string
	latencies []time.Duration
}

func load(args []string) {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	url := flags.String("url", "", "where to post")
	ca := flags.String("ca", "", "authority, PEM")
	name := flags.String("name", "", "name in the certificate")
	body := flags.String("body", "", "file with the review")
	connections := flags.Int("connections", 16, "who ask one after the other, each on its connection")
	seconds := flags.Float64("seconds", 5, "how long")
	rate := flags.Int("rate", 0, "so many a second instead, whatever is answered; latency is from when one was due")
	once := flags.Bool("once", false, "every connection asks once, all at the same time")
	retry := flags.Bool("retry", false, "ask again after a second where it is told to, as the apiserver does")
	_ = flags.Parse(args)

	text, err := os.ReadFile(*body)
	if err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile(*ca)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool, ServerName: *name},
		MaxIdleConnsPerHost: *connections,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	r := &run{client: client, url: *url, body: text, retry: *retry, answers: map[int]int{}, failures: []string{}}

	begin := time.Now()
	end := begin.Add(time.Duration(*seconds * float64(time.Second)))
	var all sync.WaitGroup
	switch {
	case *rate > 0:
		every := time.Second / time.Duration(*rate)
		for due := begin; due.Before(end); due = due.Add(every) {
			time.Sleep(time.Until(due))
			all.Go(func() { r.ask(due) })
		}
	case *once:
		for range *connections {
			all.Go(func() { r.ask(time.Now()) })
		}
	default:
		for range *connections {
			all.Go(func() {
				for now := time.Now(); now.Before(end); now = time.Now() {
					r.ask(now)
				}
			})
		}
	}
	all.Wait()
	r.report(time.Since(begin))
}

// ask posts the review once, or until it is not told to come again.
func (r *run) ask(due time.Time) {
	for {
		status, again, err := r.post()
		if err == nil && again && r.retry && time.Since(due) < 20*time.Second {
			r.count(status, nil, -1)
			time.Sleep(time.Second)
			continue
		}
		r.count(status, err, time.Since(due))
		return
	}
}

func (r *run) post() (status int, again bool, err error) {
	answer, err := r.client.Post(r.url, "application/json", bytes.NewReader(r.body))
	if err != nil {
		return 0, false, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Header.Get("Retry-After") != "", err
}

func (r *run) count(status int, err error, latency time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil {
		r.failures = append(r.failures, err.Error())
		return
	}
	r.answers[status]++
	if latency >= 0 {
		r.latencies = append(r.latencies, latency)
	}
}

func (r *run) report(took time.Duration) {
	slices.Sort(r.latencies)
	at := func(share float64) float64 {
		if len(r.latencies) == 0 {
			return 0
		}
		return r.latencies[int(share*float64(len(r.latencies)-1))].Seconds()
	}
	found := result{r.answers, r.failures, took.Seconds(), at(0.5), at(0.99), at(1)}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}
