/** The version of this build: `make dist` writes it, as in package.json. */
export const VERSION = "0.2.0-dev0";
