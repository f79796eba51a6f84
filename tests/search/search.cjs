// Asks the search of a built site, as its own scripts find and order the results: node search.cjs SITE QUESTION…
// Prints for each question its results, best first, each as [page, title, anchor, score].
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [site, ...questions] = process.argv.slice(2);
const context = vm.createContext({
  URLSearchParams,
  localStorage: { setItem() {} },
  location: { search: "" },
  document: {
    readyState: "loading",
    addEventListener() {},
    getElementById: () => ({ firstChild: null }),
    documentElement: { dataset: {} },
  },
  addEventListener() {},
});
context.window = context;
const html = fs.readFileSync(path.join(site, "search.html"), "utf8");
const scripts = [...html.matchAll(/<script src="([^"?]+)/g)].map((found) => found[1]).filter((name) => !name.includes("furo"));
const program = scripts.map((name) => fs.readFileSync(path.join(site, name), "utf8")).join("\n;\n");
const ask = vm.runInContext(`${program}\n;(question) => Search._performSearch(...Search._parseQuery(question)).reverse()`, context);
const answers = questions.map((question) => {
  context.location.search = `?${new URLSearchParams({ q: question })}`;
  return ask(question).map((found) => [found[0], found[1], found[2], found[4]]);
});
console.log(JSON.stringify(answers));
