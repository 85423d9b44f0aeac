/* What our sources need of Microsoft's header, to be looked at by Clang where there is none. */
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isfinite(x) __builtin_isfinite(x)
double ceil(double), erfc(double), exp(double), expm1(double), fabs(double), floor(double);
double fmax(double, double), fmin(double, double), log(double), log1p(double), sqrt(double);
