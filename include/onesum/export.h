// ONESUM_API marks what the shared library exports; all other symbols are hidden. Write it on a public
// class whose members are not all inline, on a public function that is not inline, and on every exception
// type (a type thrown across the library's border must have one identity on both sides).
#pragma once

#define ONESUM_API __attribute__((visibility("default")))
