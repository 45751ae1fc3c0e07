/* The explorer: asks for a certificate and shows it as it grows. */
"use strict";

const $ = (id) => document.getElementById(id);

function headers() {
  const all = {"Content-Type": "application/json"};
  if ($("token").value) all.Authorization = "Bearer " + $("token").value;
  return all;
}

/* Calls each(event, data) for every event of a stream. */
async function readEvents(response, each) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [name, data] = event.split("\n");
      each(name.slice(7), JSON.parse(data.slice(6)));
    }
  }
}

function words(radius) {
  return radius === "all" ? "whatever words are exchanged" : "against " + radius + " changed word" + (radius === 1 ? "" : "s");
}

function show(event, data) {
  if (event === "prediction") $("answer").textContent = data.label === null ? data.leading + " leads, not clearly" : data.label;
  else if (event === "progress")
    $("proof").textContent = data.n + " draws; " + (data.claim ? "proven so far: " + words(data.radius) : "not yet a claim");
  else if (event === "error") $("proof").textContent = data.error.message;
  else if (event === "result") {
    const answer = data.answer;
    $("answer").textContent = answer.abstained ? "abstained (" + answer.leading + " leads, not clearly)" : answer.label;
    $("proof").textContent = answer.radius === 0 ? "not certified" : "certified " + words(answer.radius) +
      " (" + (answer.exact ? "exact" : "bound " + answer.bound.toFixed(4)) + ", " + answer.queries + " queries)";
  }
}

async function ask(event) {
  event.preventDefault();
  $("answer").textContent = $("proof").textContent = "";
  try {
    const response = await fetch("v1/certify/stream",
      {method: "POST", headers: headers(), body: JSON.stringify({text: $("text").value})});
    if (response.ok) await readEvents(response, show);
    else {
      if (response.status === 401) $("token").hidden = $("token-label").hidden = false;
      $("proof").textContent = (await response.json()).error.message;
    }
  } catch (error) {
    $("proof").textContent = "The server cannot be reached.";
  }
}

$("ask").addEventListener("submit", ask);
