// The base classes of errors. The class for each type of problem is in generated/problems.ts.

/** A wrong member of the request: a JSON pointer into the body, and what is wrong. */
export interface FieldError {
  readonly pointer: string;
  readonly detail: string;
}

/** The base class of all errors. `requestId` names the request in the service's log; null if none was sent. */
export class LargesseError extends Error {
  override name = "LargesseError";
  requestId: string | null = null;
  /** How often the request was sent. */
  attempts = 0;
}

const MOST_LISTED = 100; // as many as the service lists

/** One or several invalid arguments. Nothing was sent. `argument` names the first; `errors` has an error for each, the text the first 100. */
export class InvalidArgument extends LargesseError {
  override name = "InvalidArgument";
  readonly argument: string;
  readonly errors: readonly InvalidArgument[];

  constructor(argument: string, text: string, errors: readonly InvalidArgument[] = []) {
    super(errors.length ? text : `\`${argument}\` ${text}`);
    this.argument = argument;
    this.errors = errors;
  }

  /** Returns one error for all of these errors, of which there is at least one. */
  static ofAll(errors: readonly InvalidArgument[]): InvalidArgument {
    const [first] = errors as [InvalidArgument];
    if (errors.length === 1) return first;
    const lines = errors.slice(0, MOST_LISTED).map((error) => `- ${error.message}`);
    if (errors.length > MOST_LISTED) lines.push(`- and ${errors.length - MOST_LISTED} more`);
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

/** An answer that is not one of Largesse, or cannot be read. `status` is its HTTP status. */
export class UnreadableAnswer extends LargesseError {
  override name = "UnreadableAnswer";
  status = 0;
  /** When to try again, if a proxy said so. */
  retryAfterMs: number | null = null;
  /** Whether the body of a good answer is incomplete, so that the same request may get another answer. */
  isCutShort = false;
}

/** A delivery that is not genuine. */
export class InvalidWebhook extends LargesseError {
  override name = "InvalidWebhook";
}

/** There is no signature, or it was not made with the secret for this body. */
export class InvalidSignature extends InvalidWebhook {
  override name = "InvalidSignature";
}

/** Signed with the secret, but too long ago, in the future, or without a time: somebody else may have sent a copy. */
export class StaleWebhook extends InvalidWebhook {
  override name = "StaleWebhook";
}

/** The JSON of a problem. */
export interface ProblemBody {
  readonly status: number;
  readonly type: string;
  readonly title: string | null;
  readonly detail: string | null;
  readonly instance: string | null;
  readonly errors: readonly FieldError[];
}

/** An error of the service (RFC 9457). `type` and `status` are for programs, `detail` is for people.
 *
 * `errors` lists wrong recipients; for a quote, it lists everything that is wrong. The text has them all if there are several.
 * `retryAfterMs` says when to try again, if the service said so. */
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
