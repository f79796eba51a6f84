// Orders the results of the site's search: html_search_scorer of conf.py, used by Sphinx' searchtools.js.
//
// Sphinx gives a page the same score wherever a word stands in its headings. Here a result also counts how many words of the question
// stand in the heading of one section, leads to that section, and pages for people who change Largesse come last. Words that the documentation
// does not use stand for those that it does use, and where no page has all words, the most that one page has are looked for.

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
    [/^sdk\/|^docs\/assistants/, 6],
    [/^docs\/(audit|contract|commands|settings|seed-file|metrics|log-events)$/, 3],
  ],
  FOR_CONTRIBUTORS: 20, // from here on a page is for people who change Largesse
  MOST: 30, // what a heading with every word of the question adds
  KIND_OBJECT: "object",

  // What people ask for, and the words that the documentation has for it.
  MEANINGS: [
    [/\b(callback|hook)s?\b/g, "webhook"],
    [/\bsigning (key|secret)s?\b/g, "webhook secret"],
    [/\b(hmac|signature mismatch|(invalid|wrong) signatures?)\b/g, "verify signatures"],
    [/\b(localhost|local development|tunnel|ngrok|locally)\b/g, "webhooks machine"],
    [/\btest mode\b/g, "sandbox"],
    [/\b(fast forward|time travel|skip time|simulate time)\b/g, "let time pass"],
    [/\b(simulate|fake) (a )?(bounce|mail|email|address)\w*/g, "test addresses"],
    [/\b(double|duplicate|twice) (order|gift|charge|payment)s?\b|\b409\b/g, "idempotency"],
    [/\bretry safely|safe(ly)? (to )?retry|retries after timeout\b/g, "repeat request"],
    [/\b(429|too many requests|throttl\w+)\b/g, "rate limits"],
    [/\b(401|unauthori[sz]ed)\b/g, "authentication"],
    [/\b(permissions?|scopes?) (of|for) (an? |my )?(api )?keys?\b/g, "scopes"],
    [/\b(change|replace|renew)\b(?=.*\b(key|secret)s?\b)/g, "rotate"],
    [/\b(402|not enough money)\b/g, "insufficient balance"],
    [/\b(undo|void|revoke|take back)\b(?= .*(order|gift|code))/g, "cancel"],
    [/\b(undelivered|arrived|delivered|bounced e?mails?)\b/g, "delivery status"],
    [/\b(price preview|preview price|estimate|how much)\b/g, "quotes"],
    [/\b(next page|paging|paginate|cursor)\b/g, "pagination"],
    [/\b(environment variables?|env vars?)\b/g, "settings"],
    [/\bsmtp\b/g, "mail server"],
    [/\be-?mail(s?)\b/g, "mail$1"],
    [/\b(lost )?(encryption|master) key\b/g, "master key"],
    [/\b(zero[ -]downtime|rolling) ?(deploy\w*|upgrades?|restarts?)?\b|\b(rollback|roll back|downgrade)\b/g, "upgrade without downtime"],
    [/\b(helm|k8s)\b/g, "kubernetes"],
    [/\b(javascript|nodejs|node\.js|js) (sdk|client|library)\b|\bjavascript\b/g, "typescript"],
    [/\bpython (sdk|library)\b/g, "python client"],
    [/\b(gdpr|right to be forgotten)\b/g, "personal data"],
    [/\b(502|504|bad gateway|https|tls certificate)\b/g, "reverse proxy tls"],
    [/\b(out of stock|no stock)\b/g, "voucher numbers"],
    [/\b(bulk|mass) (send|sending|gifts)\b/g, "many recipients"],
    [/\b(api|access) logs?\b|\blogs? of (api )?requests\b/g, "request log"],
    [/\b(sso|saml|single sign[ -]on|log ?in)\b/g, "sign-in"],
  ],

  score: (result) => {
    const [page, title, anchor, , score, , kind] = result;
    const prior = score - SearchOrder.later(page);
    const words = SearchOrder.basic(splitQuery(new URLSearchParams(window.location.search).get("q") ?? ""));
    if (words.length === 0 || kind === SearchOrder.KIND_OBJECT) return prior;
    const best = SearchOrder.sections(page).map((section) => ({ ...section, weight: SearchOrder.weigh(words, section) }))
      .reduce((one, other) => (other.weight > one.weight ? other : one));
    if (anchor === "" && best.anchor && best.weight > 0) {
      result[1] = `${title} > ${best.title}`;
      result[2] = `#${best.anchor}`;
    }
    return prior + SearchOrder.MOST * best.weight;
  },

  // What is looked for in place of a question, as a list of words: of those that count, the most that one page has; of as many, those that
  // more headings have.
  asked: (question) => {
    const meant = SearchOrder.MEANINGS.reduce((text, [said, meaning]) => text.replace(said, meaning), question.toLowerCase());
    const words = [...new Set(SearchOrder.split(meant))].filter((word) => !stopwords.has(word) && !/^\d+$/.test(word));
    const known = words.map((word) => [word, SearchOrder.pagesWith(word)]).filter(([, pages]) => pages.size > 0).slice(0, 8);
    const parts = known.reduce((found, one) => [...found, ...found.map((part) => [...part, one])], [[]]);
    const best = parts.map((part) => ({ part, pages: SearchOrder.pagesWithAll(part) })).filter(({ pages }) => pages > 0)
      .sort((one, other) => other.part.length - one.part.length || SearchOrder.inHeadings(other.part) - SearchOrder.inHeadings(one.part)
        || one.pages - other.pages)[0];
    return best ? best.part.map(([word]) => word) : words;
  },

  // The pages that have a word, as Sphinx looks for it: also as a part of a longer one. Those for people who change Largesse count only
  // where no other page has it.
  pagesWith: (word) => {
    const stem = new Stemmer().stemWord(word);
    const { terms, titleterms, docnames } = Search._index;
    const hits = [terms, titleterms].flatMap((of) =>
      Object.hasOwn(of, stem) ? [of[stem]] : stem.length > 2 ? Object.keys(of).filter((term) => term.includes(stem)).map((term) => of[term]) : []);
    const pages = [...new Set(hits.flat())];
    const forUsers = pages.filter((page) => SearchOrder.later(docnames[page]) < SearchOrder.FOR_CONTRIBUTORS);
    return new Set(forUsers.length ? forUsers : pages);
  },

  // How many pages have all words of some; more than there are for none.
  pagesWithAll: (part) =>
    part.length ? [...part.map(([, pages]) => pages).reduce((some, more) => new Set([...some].filter((page) => more.has(page))))].length : Infinity,

  inHeadings: (part) => SearchOrder.basic(part.map(([word]) => word)).filter((stem) => Object.hasOwn(Search._index.titleterms, stem)).length,

  split: (text) => text.toLowerCase().split(/[^\p{Letter}\p{Number}_]+/u).filter((word) => word),

  later: (page) => SearchOrder.LATER.find(([name]) => name.test(page))?.[1] ?? 0,

  // The words of a text that count, in their basic form.
  words: (text) => SearchOrder.basic(SearchOrder.split(text).filter((word) => !stopwords.has(word))),

  basic: (words) => {
    const stemmer = new Stemmer();
    return [...new Set(words.map((word) => stemmer.stemWord(word)))];
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

// Sphinx takes the words of a question from here, and from its own function where there is none of this name.
var splitQuery = (question) => SearchOrder.asked(question);
