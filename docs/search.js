// Orders the results of the site's search: html_search_scorer of conf.py, used by Sphinx' searchtools.js.
//
// Sphinx gives a page the same score wherever a word stands in its headings. Here a result also counts how many words of the question
// stand in the heading of one section, leads to that section, and pages for people who change Largesse come last.

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: (result) => SearchOrder.score(result),
};

var SearchOrder = {
  // By how much a page comes later, by the beginning of its name.
  LATER: [
    [/^docs\/decisions\//, 40],
    [/^CHANGELOG|^docs\/performance/, 40],
    [/^CONTRIBUTING|^README|^docs\/(testing|architecture|glossary|index|guide-developer|operations)$/, 20],
    [/^docs\/reference-client/, 8],
    [/^sdk\//, 6],
    [/^docs\/(audit|contract|commands|settings|seed-file|metrics|log-events)$/, 3],
  ],
  MOST: 30, // what a heading with every word of the question adds
  KIND_OBJECT: "object",

  score: (result) => {
    const [page, title, anchor, , score, , kind] = result;
    const later = SearchOrder.LATER.find(([name]) => name.test(page));
    const prior = score - (later ? later[1] : 0);
    const words = SearchOrder.words(new URLSearchParams(window.location.search).get("q") ?? "");
    if (words.length === 0 || kind === SearchOrder.KIND_OBJECT) return prior;
    const best = SearchOrder.sections(page).map((section) => ({ ...section, weight: SearchOrder.weigh(words, section) }))
      .reduce((one, other) => (other.weight > one.weight ? other : one));
    if (anchor === "" && best.anchor && best.weight > 0) {
      result[1] = `${title} > ${best.title}`;
      result[2] = `#${best.anchor}`;
    }
    return prior + SearchOrder.MOST * best.weight;
  },

  // The words of a text that count, in their basic form.
  words: (text) => {
    const stemmer = new Stemmer();
    const found = splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word));
    return [...new Set(found.map((word) => stemmer.stemWord(word)))];
  },

  // The headings of a page, each with the words of the page's own.
  sections: (page) => {
    const index = Search._index;
    const at = index.docnames.indexOf(page);
    const ofPage = SearchOrder.words(index.titles[at]);
    const found = [{ title: index.titles[at], anchor: "", words: ofPage, ofPage }];
    for (const [title, places] of Object.entries(index.alltitles))
      for (const [file, anchor] of places)
        if (file === at && anchor) found.push({ title, anchor, words: SearchOrder.words(title), ofPage });
    return found;
  },

  // From 0 to 1: how many words of the question a heading has; less for those that only the page's heading has, and for other words.
  weigh: (words, section) => {
    const inSection = words.filter((word) => section.words.includes(word)).length;
    const inPage = words.filter((word) => !section.words.includes(word) && section.ofPage.includes(word)).length;
    const others = section.words.filter((word) => !words.includes(word)).length;
    return Math.max(0, (inSection + 0.8 * inPage) / words.length - 0.04 * others);
  },
};
