// What all errors have in common. The classes of single types of problem are in generated.ts.

/** One of the members that are wrong: a JSON pointer into the body, and what is wrong with it. */
export interface FieldError {
  readonly pointer: string;
  readonly detail: string;
}

/** Anything that went wrong. `requestId` names the request in the service's log; null where none was sent. */
export class LargesseError extends Error {
  override name = "LargesseError";
  requestId: string | null = null;
  /** How often the request was sent. */
  attempts = 0;
}

/** An argument that cannot be right: nothing was sent. `argument` names the first; `errors` has an error for each. */
export class InvalidArgument extends LargesseError {
  override name = "InvalidArgument";
  readonly argument: string;
  readonly errors: readonly InvalidArgument[];

  constructor(argument: string, text: string, errors: readonly InvalidArgument[] = []) {
    super(errors.length ? text : `\`${argument}\` ${text}`);
    this.argument = argument;
    this.errors = errors;
  }

  /** Returns one error for all of these, at least one. */
  static ofAll(errors: readonly InvalidArgument[]): InvalidArgument {
    const [first] = errors as [InvalidArgument];
    if (errors.length === 1) return first;
    const lines = errors.map((error) => `- ${error.message}`);
    return new InvalidArgument(first.argument, [`${errors.length} arguments are wrong:`, ...lines].join("\n"), errors);
  }
}

/** No answer, or half of one: the request may have been carried out. */
export class NoAnswer extends LargesseError {
  override name = "NoAnswer";
}

/** No connection could be made: the request was not carried out. */
export class Unreachable extends NoAnswer {
  override name = "Unreachable";
}

/** An answer that is not one of Largesse, or cannot be understood. `status` is its HTTP status. */
export class UnreadableAnswer extends LargesseError {
  override name = "UnreadableAnswer";
  status = 0;
  /** When to ask again, where a proxy says so. */
  retryAfterMs: number | null = null;
  /** Whether the body of a good answer is not whole, so that the same request may get another one. */
  isCutShort = false;
}

/** A delivery that is not to be believed. */
export class InvalidWebhook extends LargesseError {
  override name = "InvalidWebhook";
}

/** No signature, or none that was made with the secret over this body. */
export class InvalidSignature extends InvalidWebhook {
  override name = "InvalidSignature";
}

/** Genuine, but signed too long ago or in the future, or nothing says when: it may be a copy that somebody else sends again. */
export class StaleWebhook extends InvalidWebhook {
  override name = "StaleWebhook";
}

/** What a problem says. */
export interface ProblemBody {
  readonly status: number;
  readonly type: string;
  readonly title: string | null;
  readonly detail: string | null;
  readonly instance: string | null;
  readonly errors: readonly FieldError[];
}

/** Largesse's own no (RFC 9457). `type` and `status` are for programs, `detail` is for people.
 *
 * `errors` names the wrong recipients where there are any; of a quote, all that is wrong. The text lists them if there are several.
 * `retryAfterMs` says when to ask again, where the service does. */
export class Problem extends LargesseError {
  static readonly slug: string = "";
  override name = "Problem";
  readonly status: number;
  readonly type: string;
  readonly title: string | null;
  readonly detail: string | null;
  readonly instance: string | null;
  readonly errors: readonly FieldError[];
  retryAfterMs: number | null = null;

  constructor(body: ProblemBody, requestId: string | null) {
    const slug = body.type.slice(body.type.lastIndexOf("/") + 1);
    const request = requestId ? ` (request id ${requestId})` : "";
    const listed = body.errors.length > 1 ? body.errors.map((one) => `\n- ${one.pointer}: ${one.detail}`) : [];
    super(`${body.detail ?? body.title ?? body.type} [${body.status} ${slug}]${request}${listed.join("")}`);
    this.status = body.status;
    this.type = body.type;
    this.title = body.title;
    this.detail = body.detail;
    this.instance = body.instance;
    this.errors = body.errors;
    this.requestId = requestId;
  }
}
