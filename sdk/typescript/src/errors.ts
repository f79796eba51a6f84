// Every error the client throws. `instanceof` tells them apart:
//
//     LargesseError
//     ├── InvalidArgument             refused here, nothing was sent
//     ├── NoAnswer                    none came, or half of one: whether the request was carried out is not known
//     │   └── Unreachable             no connection could be made: it was not
//     ├── UnreadableAnswer            what answered is not Largesse, or cannot be understood
//     ├── InvalidWebhook              a delivery that is not to be believed
//     │   ├── InvalidSignature        nobody with the secret signed it
//     │   └── StaleWebhook            it was signed too long ago, or its signature does not say when
//     └── Problem                     Largesse says no, and why: a class for each type, named as its address ends
//
// A type of problem that this release does not know is a plain Problem.

export * from "./problem.js";
export * from "./generated/problems.js";
