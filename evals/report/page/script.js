// The list of questions: filters, and a question's details unpacked when it is opened.
// Text of graphs and models only ever becomes text nodes, never markup.
(() => {
  "use strict";
  const PAGE = 40;
  const MARKS = ["✓", "✗", "–", "!"];
  const NAMES = ["right", "wrong", "no answer", "failed"];
  const data = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  const found = document.getElementById("found");
  const filters = document.getElementById("filters");
  let hits = [];
  let shown = 0;

  function h(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
    }
    for (const child of children.flat()) {
      if (child !== null && child !== undefined && child !== "") node.append(child);
    }
    return node;
  }

  const words = (name) => String(name).replaceAll("_", " ");
  const number = (value, digits) => Number(value).toLocaleString("en", { maximumFractionDigits: digits });

  function mark(outcome) {
    return h("span", { class: `mark o${outcome}`, role: "img", "aria-label": NAMES[outcome] }, MARKS[outcome]);
  }

  // Filters

  function wanted() {
    const form = new FormData(filters);
    const text = String(form.get("text") || "").trim().toLowerCase();
    const cell = form.get("cell");
    return {
      text,
      dataset: form.get("dataset"),
      cells: cell === "" ? null : data.cells.flatMap((c, n) => (c.t === cell ? [n] : [])),
      outcome: form.get("outcome") === "" ? null : Number(form.get("outcome")),
      sign: form.get("sign") === "" ? null : Number(form.get("sign")),
      differ: form.get("differ") !== null,
    };
  }

  function fits(question, want) {
    if (want.dataset && question.d !== want.dataset) return false;
    const answers = Object.entries(question.c)
      .filter(([cell]) => !want.cells || want.cells.includes(Number(cell)))
      .map(([, answer]) => answer);
    const one = answers.some((answer) =>
      (want.outcome === null || answer[0] === want.outcome) &&
      (want.sign === null || answer[2].includes(want.sign)));
    if (!one) return false;
    if (want.differ) {
      const all = Object.values(question.c);
      if (!all.some((a) => a[0] === 0) || !all.some((a) => a[0] !== 0)) return false;
    }
    if (!want.text) return true;
    const heard = [question.id, question.q, question.g, ...answers.map((a) => a[1])].join("\n");
    return heard.toLowerCase().includes(want.text);
  }

  function search() {
    const want = wanted();
    hits = data.questions.flatMap((question, n) => (fits(question, want) ? [n] : []));
    shown = 0;
    list.replaceChildren();
    found.textContent = `${number(hits.length)} of ${number(data.questions.length)} questions`;
    showMore();
  }

  function showMore() {
    list.append(...hits.slice(shown, shown + PAGE).map(row));
    shown = Math.min(hits.length, shown + PAGE);
    more.hidden = shown >= hits.length;
    more.textContent = `Show ${Math.min(PAGE, hits.length - shown)} more of ${number(hits.length - shown)}`;
  }

  function row(n) {
    const question = data.questions[n];
    const cells = data.cells.flatMap((cell, number) => (cell.d === question.d ? [number] : []));
    const chips = cells.map((cell) => {
      if (!question.c[cell]) {
        const none = `${data.cells[cell].t}: not asked`;
        return h("span", { class: "chip missing", title: none, "aria-label": none, role: "img" }, "·");
      }
      const [outcome, answer] = question.c[cell];
      const told = `${data.cells[cell].t}: ${NAMES[outcome]}${answer ? `, ${answer}` : ""}`;
      return h("span", { class: `chip o${outcome}`, title: told, "aria-label": told, role: "img" }, MARKS[outcome]);
    });
    const summary = h("summary", {},
      h("span", { class: "asked" }, question.q),
      h("span", { class: "under" }, h("span", { class: "id" }, `${question.d} · ${question.id}`),
        h("span", {}, `gold: ${question.g}`), h("span", { class: "chips" }, chips)));
    const body = h("div", { class: "body" });
    const node = h("details", { class: "question" }, summary, body);
    node.addEventListener("toggle", () => {
      if (node.open && !body.firstChild) open(n, body);
    });
    return node;
  }

  // A question in full

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  async function open(n, body) {
    try {
      body.replaceChildren(...whole(await unpacked(data.details[n])));
    } catch (error) {
      body.replaceChildren(h("p", { class: "fault" }, `This browser cannot unpack the details: ${error}`));
    }
  }

  function whole(detail) {
    const gold = detail.gold;
    const choices = Object.entries(gold.choices || {}).map(([label, text]) => {
      const right = gold.answers.includes(label);
      return h("li", { class: right ? "right" : null }, `${label}. ${text}${right ? " (gold)" : ""}`);
    });
    const parts = [];
    if (choices.length) parts.push(h("ul", { class: "choices" }, choices));
    else parts.push(h("p", {}, `Gold: ${gold.words.join("; ")}`));
    const facts = [`topics ${told(detail.linking)}`];
    if (gold.topic_entities) facts.push(`named by the data set: ${gold.topic_entities.join(", ")}`);
    if (gold.type) facts.push(`type ${gold.type}`);
    parts.push(h("p", { class: "under" }, facts.join(" · ")));
    for (const [cell, answer] of Object.entries(detail.cells)) parts.push(configuration(cell, answer, detail));
    return parts;
  }

  function told(linking) {
    const ways = { given: "given by the data set", mention: "linked from the data set's words",
      question: "found in the question", none: "not linked" };
    return linking.map((how) => ways[how] || how).join(" / ");
  }

  function configuration(cell, answer, detail) {
    const meant = data.cells[cell];
    const choice = answer.choice ? `${answer.choice}. ` : "";
    const given = answer.answers ? choice + answer.answers.join("; ") : NAMES[answer.outcome];
    const sure = answer.confidence === undefined ? "" : ` (${Math.round(100 * answer.confidence)} % sure)`;
    const [asked, live, tokens, seconds] = answer.cost;
    const cost = `${number(asked)} calls${live < asked ? ` (${number(asked - live)} from the cache)` : ""}, ` +
      `${number(tokens)} tokens, ${number(answer.seconds ?? seconds, 1)} s`;
    const summary = h("summary", {}, mark(answer.outcome), " ", h("b", {}, meant.t), " ",
      h("span", { class: "under" }, meant.m), h("span", { class: "given" }, given + sure));
    const body = h("div", { class: "body" });
    const node = h("details", { class: "configuration" }, summary, body);
    node.addEventListener("toggle", () => {
      if (!node.open || body.firstChild) return;
      body.append(...why(answer), h("p", { class: "under" }, `${cost} · run ${answer.run}`),
        ...topics(answer), ...evidence(answer, detail), ...transcript(answer, detail.gold), calls(answer));
    });
    return node;
  }

  function why(answer) {
    const lines = [];
    if (answer.why) lines.push(answer.why);
    if (answer.error) lines.push(`${answer.error.type}: ${answer.error.message}`);
    for (const sign of answer.signs) lines.push(data.signs[sign]);
    for (const [role, rounds] of Object.entries(answer.held || {})) {
      lines.push(`${words(role)} held the right answer (${words(role) === "reasoner" ? "sample" : "round"} ${rounds.join(", ")})`);
    }
    for (const warning of answer.warnings || []) lines.push(`warning: ${warning}`);
    const ended = Object.entries(answer.ended || {}).filter(([k, v]) => k !== "reason" && v !== null && v !== "");
    if (ended.length) lines.push(`ended: ${ended.map(([k, v]) => `${k === "k" ? "K" : words(k)} ${typeof v === "object" ? JSON.stringify(v) : v}`).join(", ")}`);
    return [h("ul", { class: "why" }, lines.map((line) => h("li", {}, line)))];
  }

  function topics(answer) {
    if (!answer.topics) return [];
    const linked = answer.topics.map((t) =>
      `${t.mention} → ${t.name ?? t.entity}${t.name && t.name !== t.entity ? ` (${t.entity})` : ""} ${number(t.score, 2)}`);
    return [h("h4", {}, "Topic entities"), h("p", {}, linked.join("; "))];
  }

  function evidence(answer, detail) {
    if (!answer.evidence.length) return [];
    const naming = new Set(answer.naming || []);
    const supporting = answer.evidence.filter((e) => e[2]).length;
    const first = (e) => (e[2] ? 0 : naming.has(e[0]) ? 1 : 2);
    const ordered = [...answer.evidence].sort((a, b) => first(a) - first(b) || a[0] - b[0]);
    const rows = ordered.map(([n, index, supports, level]) => {
      const [head, relation, tail, confidence, headId, tailId, provenance] = detail.facts[index];
      const end = (name, id) => (id ? `${name} (${id})` : name);
      return h("tr", { class: supports ? "supports" : null }, h("td", { class: "number" }, String(n)),
        h("td", {}, end(head, headId)), h("td", {}, relation),
        h("td", {}, end(tail, tailId), provenance ? h("span", { class: "under" }, ` ${provenance}`) : null),
        h("td", { class: "number" }, Number(confidence).toFixed(2)),
        h("td", { class: "number" }, level ? String(level) : ""),
        h("td", {}, [supports ? "supports the answer" : "", naming.has(n) ? "names the gold answer" : ""].filter(Boolean).join(", ")));
    });
    const head = ["", "head", "relation", "tail", "confidence", "K", ""].map((name) => h("th", { scope: "col" }, name));
    const title = `Evidence: ${number(answer.of)} facts, ${supporting} support the answer, ${naming.size} name the gold answer`;
    const parts = [h("h4", {}, title), h("div", { class: "scroll tall facts-found", tabindex: "0", role: "region", "aria-label": "Evidence" },
      h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)))];
    if (answer.of > rows.length) parts.push(h("p", { class: "under" }, `${number(answer.of - rows.length)} more facts are in results.jsonl`));
    return parts;
  }

  const TOLD = new Set(["node", "round", "k", "sample", "answer", "facts", "argument", "reason", "reasoning", "text", "fault",
    "seconds", "llm_calls", "cached_calls", "chosen", "action", "note", "agreement", "confidence", "new_facts"]);
  const SILENT = new Set(["begin", "report", "open_round", "link_topics"]);

  function transcript(answer, gold) {
    const parts = [];
    let round = null;
    for (const entry of answer.trace || []) {
      if (SILENT.has(entry.node) && !entry.fault) continue;
      if (entry.round && entry.round !== round) {
        round = entry.round;
        parts.push(h("h5", {}, `Round ${round}${entry.k ? `, K = ${entry.k}` : ""}`));
      }
      parts.push(turn(entry, gold, answer));
    }
    return parts.length ? [h("h4", {}, "Transcript"), h("div", { class: "transcript" }, parts)] : [];
  }

  function turn(entry, gold, answer) {
    const name = words(entry.node) + (entry.sample === undefined ? "" : ` ${entry.sample}`);
    const said = [];
    if (entry.node === "retrieve") said.push(`evidence at K = ${entry.k}: ${entry.new_facts ?? 0} new facts, ${entry.facts ?? 0} in all`);
    else if (entry.answer !== undefined) {
      const text = (gold.choices || {})[entry.answer];
      said.push(text ? `${entry.answer}. ${text}` : String(entry.answer));
    }
    if (entry.action) said.push(entry.chosen && entry.chosen !== entry.action ? `${entry.chosen} → ${entry.action}` : entry.action);
    if (entry.agreement !== undefined) said.push(entry.agreement ? "the answers agree" : "the answers differ");
    if (entry.confidence !== undefined) said.push(`${Math.round(100 * entry.confidence)} % sure`);
    const meta = [];
    if (entry.seconds !== undefined) meta.push(`${number(entry.seconds, 1)} s`);
    if (entry.cached_calls) meta.push("from the cache");
    const held = ((answer.held || {})[entry.node] || []).includes(entry.round ?? entry.sample ?? 0);
    const text = entry.argument ?? entry.reason ?? entry.reasoning ?? entry.text;
    const cited = Array.isArray(entry.facts) ? `cites fact${entry.facts.length > 1 ? "s" : ""} ${entry.facts.join(", ")}` : null;
    const others = Object.entries(entry).filter(([key]) => !TOLD.has(key));
    return h("div", { class: `turn ${["proponent", "challenger", "decision_maker", "judge"].includes(entry.node) ? entry.node : ""}` },
      h("p", { class: "who" }, h("b", {}, name), said.length ? `: ${said.join(", ")}` : "", held ? h("span", { class: "held" }, " ✓ right") : null,
        h("span", { class: "under" }, meta.length ? ` ${meta.join(", ")}` : "")),
      text ? h("p", { class: "said" }, String(text)) : null,
      cited ? h("p", { class: "under" }, cited) : null,
      entry.note ? h("p", { class: "under" }, String(entry.note)) : null,
      entry.fault ? h("p", { class: "fault" }, String(entry.fault)) : null,
      others.map(([key, value]) => h("p", { class: "under" }, `${words(key)}: ${typeof value === "string" ? value : JSON.stringify(value)}`)));
  }

  function calls(answer) {
    if (!answer.calls) return "";
    const names = ["role", "model", "tokens in", "of them prefix-cached", "tokens out", "seconds", "notes"];
    const rows = answer.calls.map(([role, model, into, prefix, out, seconds, cached, repair, cut]) => {
      const notes = [cached ? "from the cache" : "", repair ? "repair" : "", cut ? "cut at its limit" : ""].filter(Boolean).join(", ");
      return h("tr", {}, h("td", {}, words(role)), h("td", {}, model),
        [number(into), number(prefix), number(out), number(seconds, 1)].map((v) => h("td", { class: "number" }, v)), h("td", {}, notes));
    });
    return h("details", {}, h("summary", {}, `Model calls: ${rows.length}`),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Model calls" },
        h("table", {}, h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows))));
  }

  more.addEventListener("click", showMore);
  filters.addEventListener("input", search);
  filters.addEventListener("submit", (event) => event.preventDefault());
  search();
})();
