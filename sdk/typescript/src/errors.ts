// Every error the client throws. `instanceof` tells them apart:
//
//     LargesseError
//     ├── InvalidArgument             refused by the client, nothing was sent
//     ├── NoAnswer                    no answer, or half of one: it is not known whether the request was carried out
//     │   └── Unreachable             no connection could be made: it was not carried out
//     ├── UnreadableAnswer            the answer is not one of Largesse, or cannot be read
//     ├── InvalidWebhook              a delivery that is not genuine
//     │   ├── InvalidSignature        nobody with the secret signed it
//     │   └── StaleWebhook            it was signed too long ago, or its signature has no time
//     └── Problem                     Largesse refuses, with the reason: a class for each type, with the name at the end of its address
//
// A type of problem that this release does not know becomes a Problem.

export * from "./problem.js";
export * from "./generated/problems.js";
